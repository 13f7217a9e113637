package kind_test

import (
	"strings"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// kindOf returns a kind that has a spec and nothing else.
func kindOf(name string, spec *descriptor.Shape) descriptor.Kind {
	singular := strings.ToLower(name)
	return descriptor.Kind{
		Name: name, Singular: singular, Plural: singular + "s", Group: "example.org", Version: "v1",
		Scope: descriptor.Namespaced, Spec: spec,
	}
}
