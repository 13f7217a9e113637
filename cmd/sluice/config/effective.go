package config

import (
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Effective is a setting with the value that a gateway uses.
type Effective struct {
	Name string `json:"name" yaml:"name"`
	// Value has the form of the configuration file; a list is joined by commas. It is empty for a
	// default that is computed, which Auto describes.
	Value string `json:"value" yaml:"value"`
	Auto  string `json:"auto,omitempty" yaml:"auto,omitempty"`
	// Source is "default", "flag", or the environment variable or file that has set the
	// value.
	Source string `json:"source" yaml:"source"`
}

// EffectiveSettings returns the settings with the values of their flags after [Load].
func EffectiveSettings(flags *pflag.FlagSet, settings []Setting) []Effective {
	out := make([]Effective, len(settings))
	for i, s := range settings {
		out[i] = Effective{Name: s.Name, Value: s.plain(), Source: Source(flags.Lookup(s.Name))}
		if s.Auto != "" && out[i].Source == "default" {
			out[i].Value = ""
			out[i].Auto = strings.ReplaceAll(s.Auto, "`", "")
		}
	}
	return out
}

// plain returns the value in the form of the configuration file.
func (s Setting) plain() string {
	switch v := s.Value.(type) {
	case *string:
		return *v
	case *int:
		return strconv.Itoa(*v)
	case *[]string:
		return strings.Join(*v, ",")
	case *Services:
		return (*serviceMap)(v).String()
	}
	return s.Text()
}
