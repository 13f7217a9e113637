package output

import (
	"fmt"
	"strings"

	"github.com/sluicegw/sluice/graph/client"
)

// Form is a form of output, without its parameters.
type Form string

// The forms that the flag --output accepts.
const (
	FormTable    Form = "table"
	FormWide     Form = "wide"
	FormYAML     Form = "yaml"
	FormJSON     Form = "json"
	FormManifest Form = "manifest"
	FormName     Form = "name"
	FormPath     Form = "jsonpath"
	FormColumns  Form = "custom-columns"
)

// Format is a form with its parameters.
type Format struct {
	Form
	template Path
	columns  []column
}

// Formats returns the texts that [ParseFormat] accepts, for people.
func Formats() []string {
	return []string{
		"table",
		"wide",
		"yaml",
		"json",
		"manifest",
		"name",
		"jsonpath=TEMPLATE",
		"custom-columns=NAME:PATH,...",
	}
}

// ParseFormat parses the value of the flag --output.
func ParseFormat(text string) (Format, error) {
	form, rest, found := strings.Cut(text, "=")
	f := Format{Form: Form(form)}
	var err error
	switch f.Form {
	case FormTable, FormWide, FormYAML, FormJSON, FormManifest, FormName:
		if !found {
			return f, nil
		}
	case FormPath:
		if rest != "" {
			f.template, err = ParsePath(rest)
			return f, err
		}
	case FormColumns:
		if rest != "" {
			f.columns, err = parseColumns(rest)
			return f, err
		}
	}
	return f, fmt.Errorf("output: %q; accepted are %s", text, strings.Join(Formats(), ", "))
}

// Watchable reports whether the form can represent changes, with the type of each event.
func (f Format) Watchable() bool {
	return f.Form != FormYAML && f.Form != FormManifest && f.Form != FormPath
}

// Needs returns what must be requested from the gateway for the form. manifests is the format of manifests; it is empty
// if manifests are not needed. namesOnly reports whether the names of the resources are enough.
func (f Format) Needs() (manifests client.Format, namesOnly bool) {
	switch f.Form {
	case FormManifest:
		return client.YAML, false
	case FormName:
		return "", true
	}
	return "", false
}
