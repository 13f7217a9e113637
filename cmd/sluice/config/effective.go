package config

import (
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Effective is a setting with its effective value.
type Effective struct {
	Name string `json:"name" yaml:"name"`
	// Value is the value in the form of the configuration file. The elements of a list are joined by commas. If the
	// default is computed, Value is empty and Auto describes the default.
	Value string `json:"value" yaml:"value"`
	Auto  string `json:"auto,omitempty" yaml:"auto,omitempty"`
	// Source is "default", "flag", or the name of the environment variable or file with the value.
	Source string `json:"source" yaml:"source"`
}

// EffectiveSettings returns the settings with their effective values. It must be called after [Load].
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

// plain returns the value of the setting in the form of the configuration file.
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

// WithoutCredentials returns the text of a URL without what may be a credential: the user and the password, the query
// and the fragment. The URL may be malformed, for example because its password has a slash.
func WithoutCredentials(address string) string {
	const hidden = "(not shown)"
	scheme, rest, found := strings.Cut(address, "://")
	if !found {
		rest = address
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = hidden + rest[i:]
	}
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i+1] + hidden
	}
	if found {
		return scheme + "://" + rest
	}
	return rest
}
