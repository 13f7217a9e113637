package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluicegw/sluice/backend/manifest"
	"github.com/sluicegw/sluice/graph/client"
)

// whole is a resource as JSON. It fixes the order of the keys.
type whole struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	SubKind    string          `json:"subKind,omitempty"`
	Metadata   metadata        `json:"metadata"`
	Spec       json.RawMessage `json:"spec,omitempty"`
	Status     json.RawMessage `json:"status,omitempty"`
}

type metadata struct {
	Name        string            `json:"name"`
	Namespace   *string           `json:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Description string            `json:"description,omitempty"`
	UID         string            `json:"uid"`
	Revision    string            `json:"revision"`
	Generation  int64             `json:"generation"`
	CreatedAt   time.Time         `json:"createdAt"`
	UpdatedAt   time.Time         `json:"updatedAt"`
	UpdatedBy   string            `json:"updatedBy,omitempty"`
	ExpiresAt   *time.Time        `json:"expiresAt,omitempty"`
	Requested   *time.Time        `json:"deletionRequestedAt,omitempty"`
	Finalizers  []string          `json:"finalizers,omitempty"`
}

// JSON returns the complete resource as a manifest that apply accepts. It has the revision and the other fields that
// the gateway sets. Fields are at their places in manifests.
func JSON(k client.Kind, r *client.Resource) ([]byte, error) {
	m := r.Metadata
	out := whole{
		APIVersion: k.APIVersion, Kind: r.Kind, SubKind: r.SubKind,
		Metadata: metadata{
			Name:        m.Name,
			Namespace:   m.Namespace,
			Labels:      byKey(m.Labels),
			Annotations: byKey(m.Annotations),
			Description: m.Description,
			UID:         m.UID,
			Revision:    m.Revision,
			Generation:  m.Generation,
			CreatedAt:   m.CreatedAt,
			UpdatedAt:   m.UpdatedAt,
			UpdatedBy:   m.UpdatedBy,
			ExpiresAt:   m.ExpiresAt,
			Requested:   m.DeletionRequestedAt,
			Finalizers:  m.Finalizers,
		},
	}
	spec, placed, err := place(k, r.Spec)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Kind, m.Name, err)
	}
	out.Spec = spec
	if string(r.Status) != "null" {
		out.Status = r.Status
	}
	raw, err := encode(out)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Kind, m.Name, err)
	}
	text := bytes.TrimSuffix(raw, []byte("}\n"))
	for _, key := range slices.Sorted(maps.Keys(placed)) {
		text = fmt.Appendf(text, ",%q:%s", key, placed[key])
	}
	var b bytes.Buffer
	err = json.Indent(&b, append(text, '}'), "", "  ")
	return b.Bytes(), err
}

func byKey(pairs []client.Pair) map[string]string {
	out := make(map[string]string, len(pairs))
	for _, p := range pairs {
		out[p.Key] = p.Value
	}
	return out
}

// encode returns the JSON of a value, without escapes for HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// place returns the fields that manifests of the kind have at the top level, and the spec without these fields.
func place(k client.Kind, spec json.RawMessage) (json.RawMessage, map[string]json.RawMessage, error) {
	top := map[string]string{} // key of the manifest by field
	for _, f := range k.Fields {
		if f.ManifestAt != "" {
			top[strings.TrimPrefix(f.Path, "spec.")] = f.ManifestAt
		}
	}
	if len(top) == 0 || len(spec) == 0 {
		return spec, nil, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(spec, &fields); err != nil {
		return nil, nil, fmt.Errorf("spec: %w", err)
	}
	placed := map[string]json.RawMessage{}
	for name, key := range top {
		if raw, ok := fields[name]; ok {
			placed[key] = raw
			delete(fields, name)
		}
	}
	if len(fields) == 0 && len(placed) > 0 {
		return nil, placed, nil
	}
	rest, err := json.Marshal(fields)
	return rest, placed, err
}

// YAML returns the document of [JSON] as YAML.
func YAML(k client.Kind, r *client.Resource) ([]byte, error) {
	raw, err := JSON(k, r)
	if err != nil {
		return nil, err
	}
	return manifest.YAML(raw)
}

// Tree returns the document of [JSON], decoded. Integers are int64, other numbers float64.
func Tree(k client.Kind, r *client.Resource) (map[string]any, error) {
	raw, err := JSON(k, r)
	if err != nil {
		return nil, err
	}
	v, err := client.Decode(raw)
	tree, _ := v.(map[string]any)
	return tree, err
}
