package config

import (
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Effective is a setting as a gateway uses it.
type Effective struct {
	Name string `json:"name" yaml:"name"`
	// Value is written as in the configuration file, a list with commas. It is empty for a default that follows from
	// something else, which Auto describes.
	Value string `json:"value" yaml:"value"`
	Auto  string `json:"auto,omitempty" yaml:"auto,omitempty"`
	// Source is "default", "flag", or the variable or the file that the value is from.
	Source string `json:"source" yaml:"source"`
}

// EffectiveSettings returns the settings with the values that [Load] has given to their flags.
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

// plain returns the value as a configuration file has it.
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
