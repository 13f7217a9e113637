package kinds_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// facts are what a schema says of the fields of a kind: "path what" and the
// value, like "spec.resource.mtu max" and "9216". The path of an element of a
// list ends in [], that of a value of a map in {}.
type facts map[string]string

func (f facts) add(path, what string, value any) {
	if s := fmt.Sprint(value); value != nil && s != "" && s != "[]" {
		f[path+" "+what] = s
	}
}

// openAPI is the part of OpenAPI v3 in which the published schemas are written.
type openAPI struct {
	Type                 string
	Format, Pattern      string
	Enum                 []any
	Default              any
	Required             []string
	Properties           map[string]*openAPI
	AdditionalProperties *openAPI
	Items                *openAPI
	ListType             string   `json:"x-kubernetes-list-type"`
	ListKeys             []string `json:"x-kubernetes-list-map-keys"`
	Rules                []struct {
		Rule, Message string
	} `json:"x-kubernetes-validations"`
	Minimum, Maximum             *float64
	MinLength, MaxLength         *int
	MinItems, MaxItems           *int
	MinProperties, MaxProperties *int
}

// published are the schemas of the kinds that others published, by kind.
func published(t *testing.T) map[string]*openAPI {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(kindstest.Published(t), "crds", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*openAPI{}
	for _, file := range files {
		var crd struct {
			Spec struct {
				Names    struct{ Kind string }
				Versions []struct {
					Schema struct {
						OpenAPIV3Schema *openAPI
					}
				}
			}
		}
		kindstest.ReadYAML(t, file, &crd)
		out[crd.Spec.Names.Kind] = crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	}
	return out
}

// read adds what a published schema says. Of a status that is names, types and maxima alone.
func (f facts) read(at string, s *openAPI) {
	status := strings.HasPrefix(at, "status")
	typ := map[string]string{"integer": s.Format, "string": "string"}[s.Type]
	switch {
	case s.Format == "date-time":
		typ = "time"
	case s.Type == "array":
		typ = "list"
		f.read(at+"[]", s.Items)
	case s.AdditionalProperties != nil:
		typ = "map"
		f.read(at+"{}", s.AdditionalProperties)
	case typ == "":
		typ = s.Type
	}
	f.add(at, "type", typ)
	for name, p := range s.Properties {
		f.read(at+"."+name, p)
		if !status && slices.Contains(s.Required, name) {
			f.add(at+"."+name, "required", true)
		}
	}
	if status {
		f.bound(at, "maxLength", s.MaxLength)
		f.bound(at, "maxItems", s.MaxItems)
		f.bound(at, "maxProperties", s.MaxProperties)
		return
	}
	f.add(at, "enum", strings.Trim(fmt.Sprint(s.Enum), "[]"))
	if len(s.Enum) == 0 { // the values of an enum say how long they are
		f.bound(at, "minLength", s.MinLength)
		f.bound(at, "maxLength", s.MaxLength)
	}
	f.add(at, "pattern", s.Pattern)
	if s.Type == "string" && s.Format != "date-time" {
		f.add(at, "format", s.Format)
	}
	f.number(at, "min", s.Minimum)
	f.number(at, "max", s.Maximum)
	f.bound(at, "minItems", s.MinItems)
	f.bound(at, "maxItems", s.MaxItems)
	f.bound(at, "minProperties", s.MinProperties)
	f.bound(at, "maxProperties", s.MaxProperties)
	f.add(at, "list", s.ListType)
	f.add(at, "keys", strings.Join(s.ListKeys, " "))
	f.add(at, "default", s.Default)
	n := 0
	for _, r := range s.Rules {
		if r.Rule == "self == oldSelf" {
			f.add(at, "immutable", true)
			continue
		}
		f.add(at, fmt.Sprint("rule ", n), "a rule")
		n++
	}
}

func (f facts) bound(at, what string, n *int) {
	if n != nil {
		f.add(at, what, *n)
	}
}

func (f facts) number(at, what string, x *float64) {
	if x != nil {
		f.add(at, what, *x)
	}
}

// describe adds what a descriptor says.
func (f facts) describe(at string, s *descriptor.Shape) {
	for i := range s.Fields {
		f.field(at+"."+s.Fields[i].Name, &s.Fields[i])
	}
	if strings.HasPrefix(at, "status") {
		return
	}
	if s.MinProperties > 0 {
		f.add(at, "minProperties", s.MinProperties)
	}
	if s.MaxProperties > 0 {
		f.add(at, "maxProperties", s.MaxProperties)
	}
	for _, r := range s.Rules {
		f.add(at, "rule: "+r.Message, "a rule")
	}
}

func (f facts) field(at string, d *descriptor.Field) {
	status, c, each := strings.HasPrefix(at, "status"), d.Constraint, at
	if d.List {
		f.add(at, "type", "list")
		each += "[]"
	}
	if d.Type == descriptor.TypeMap {
		f.add(at, "type", "map")
		each += "{}"
	}
	f.add(each, "type", map[descriptor.FieldType]string{
		descriptor.TypeString: "string", descriptor.TypeEnum: "string", descriptor.TypeMap: "string", descriptor.TypeTime: "time",
		descriptor.TypeInt: "int32", descriptor.TypeSafeInt: "int64", descriptor.TypeBoolean: "boolean", descriptor.TypeObject: "object",
	}[d.Type])
	if d.Shape != nil {
		f.describe(each, d.Shape)
	}
	if status {
		f.bound(each, "maxLength", c.MaxLength)
		f.bound(at, "maxItems", c.MaxItems)
		return
	}
	if d.Required {
		f.add(at, "required", true)
	}
	if d.Immutable {
		f.add(at, "immutable", true)
	}
	if d.Enum != nil {
		var values []string
		for _, v := range d.Enum.Values {
			values = append(values, v.Stored)
		}
		f.add(each, "enum", strings.Join(values, " "))
	}
	f.bound(each, "minLength", c.MinLength)
	f.bound(each, "maxLength", c.MaxLength)
	f.add(each, "pattern", c.Pattern)
	f.add(each, "format", string(c.Format))
	f.number(each, "min", c.Min)
	f.number(each, "max", c.Max)
	f.bound(at, "minItems", c.MinItems)
	f.bound(at, "maxItems", c.MaxItems)
	f.bound(at, "keyMinLength", c.KeyMinLength)
	f.bound(at, "keyMaxLength", c.KeyMaxLength)
	f.add(at, "list", strings.ToLower(string(d.ListType)))
	f.add(at, "keys", strings.Join(d.Keys, " "))
	f.add(at, "default", d.Default)
}
