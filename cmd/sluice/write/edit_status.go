package write

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/backend/manifest"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/graph/client"
)

// statusText is the text of a status in the editor.
type statusText struct {
	Kind     string         `json:"kind"`
	Metadata statusMetadata `json:"metadata"`
	Status   map[string]any `json:"status"`
}

type statusMetadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

// status returns a draft of the status of the resource.
func (e *edit) status(ctx context.Context) (*draft, error) {
	k := e.subject.Kind
	st, err := resource.GetExisting(ctx, e.client, e.subject, "")
	if err != nil {
		return nil, err
	}
	id := resource.KeyOf(st)
	was := statusText{Kind: k.Name, Metadata: statusMetadata{Name: id.Name, Namespace: id.Namespace}}
	if was.Status, err = decodeObject(st.Status); err != nil {
		return nil, fmt.Errorf("edit: the status of %s %s is no object", k.Name, e.subject.Name)
	}
	raw, err := json.Marshal(was)
	if err != nil {
		return nil, err
	}
	text, err := manifest.YAML(raw)
	if err != nil {
		return nil, err
	}
	return &draft{text: string(text), write: func(ctx context.Context, edited string) (string, error) {
		status, err := readStatus(was, edited)
		if err == nil {
			err = checkFields(k, "status", status)
		}
		if err != nil {
			return "", textError{err}
		}
		name := id.String()
		if reflect.DeepEqual(status, was.Status) {
			return name + " UNCHANGED" + e.dry.Mark(), nil
		}
		_, err = e.client.UpdateStatus(ctx, client.StatusRequest{
			Kind:             k,
			Namespace:        e.subject.Namespace,
			Name:             e.subject.Name,
			ExpectedRevision: st.Metadata.Revision,
			Status:           status,
			DryRun:           bool(e.dry),
		})
		return name + " UPDATED" + e.dry.Mark(), writeError(ctx, err, e.dry)
	}}, nil
}

// readStatus parses an edited status. It returns an error if anything but the status was changed.
func readStatus(was statusText, edited string) (map[string]any, error) {
	raw, err := manifest.ToJSON(edited)
	if err != nil {
		return nil, err
	}
	var now statusText
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	dec.DisallowUnknownFields()
	if err := dec.Decode(&now); err != nil || now.Kind != was.Kind || now.Metadata != was.Metadata {
		return nil, errors.New("only the status is written here, an object: leave the rest as it is")
	}
	if now.Status == nil {
		return nil, errors.New("status: an object is wanted; {} is the empty one")
	}
	return now.Status, nil
}

// checkFields returns an error for fields that the kind does not have. Unlike the error of the API, it names the fields
// that exist.
func checkFields(k client.Kind, path string, value any) error {
	switch v := value.(type) {
	case []any:
		for _, e := range v {
			if err := checkFields(k, path, e); err != nil {
				return err
			}
		}
	case map[string]any:
		var fields []string
		for _, f := range k.Fields {
			if f.Path == path && f.Type == "MapEntry" {
				return nil
			}
			if name, ok := strings.CutPrefix(f.Path, path+"."); ok && !strings.Contains(name, ".") {
				fields = append(fields, name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if !slices.Contains(fields, name) {
				return fmt.Errorf("%s.%s: is not a field of kind %s; its fields here are %s",
					path, name, k.Name, strings.Join(fields, ", "))
			}
			if err := checkFields(k, path+"."+name, v[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// decodeObject decodes a JSON object. Numbers keep their text. Null is decoded as an empty object.
func decodeObject(raw []byte) (map[string]any, error) {
	tree := map[string]any{}
	if len(raw) == 0 || string(raw) == "null" {
		return tree, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return tree, dec.Decode(&tree)
}
