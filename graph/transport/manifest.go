package transport

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxManifest is the maximum size of a manifest in bytes.
const maxManifest = 64 << 20

// apolloFormat is the value of the member format in Apollo's manifests.
const apolloFormat = "apollo-persisted-query-manifest"

// trust adds the documents of a manifest file, by their ids and by their hashes.
func (s *NamedDocuments) trust(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxManifest+1)) // a device has no size and no end
	if err != nil {
		return err
	}
	if len(data) > maxManifest {
		return fmt.Errorf("more than the %d bytes that are accepted", maxManifest)
	}
	documents, err := parseManifest(data)
	if err != nil {
		return err
	}
	for id, query := range documents {
		if other, ok := s.trusted[id]; ok && other != query {
			return fmt.Errorf("the id %.80q is that of another document in a manifest before", id)
		}
		s.trusted[id] = query
		s.trusted[sha256Prefix+hashOf(query)] = query
	}
	return nil
}

// parseManifest returns the documents of a manifest by id. Apollo's manifests have a list of operations; manifests of
// Relay and of GraphQL Code Generator are objects with ids as names.
func parseManifest(data []byte) (map[string]string, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, errors.New("not a JSON object; accepted are the manifests of Apollo, Relay and GraphQL Code Generator")
	}
	out := map[string]string{}
	if _, ok := fields["operations"]; ok {
		var m struct {
			Format     string
			Version    int
			Operations []struct{ ID, Body string }
		}
		if err := json.Unmarshal(data, &m); err != nil || m.Format != apolloFormat || m.Version != 1 {
			return nil, fmt.Errorf("a manifest with operations has the format %q and version 1", apolloFormat)
		}
		for i, o := range m.Operations {
			if o.ID == "" || o.Body == "" {
				return nil, fmt.Errorf("operations[%d] has no id or no body", i)
			}
			if other, ok := out[o.ID]; ok && other != o.Body {
				return nil, fmt.Errorf("operations[%d] has the id of another", i)
			}
			out[o.ID] = o.Body
		}
		return out, nil
	}
	for id, raw := range fields {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil || text == "" {
			return nil, fmt.Errorf("%.80q is not the text of a document", id)
		}
		out[id] = text
	}
	return out, nil
}
