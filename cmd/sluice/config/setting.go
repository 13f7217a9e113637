// Package config holds the settings of a gateway in one table, from which the flags, the
// environment variables, the keys of the configuration file, their checks and the documentation are
// made.
package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Setting is one setting of a gateway.
type Setting struct {
	// Name of the flag and of the key in the configuration file.
	Name string
	// Value points to the value: a string, bool, int, duration, list of strings or [Services], or an int64,
	// which is a number of bytes. Its initial value is the default.
	Value any
	// Auto describes how the default is computed, if it is.
	Auto string
	// Help describes the setting in one line.
	Help string
	// Why is the reason for the default of a limit.
	Why string
	// Needs is the name of a setting that must be given for this one to have an effect.
	Needs string
	// Check returns an error for a value that is not accepted. Default: negative
	// numbers and durations are refused.
	Check func() error
}

// Register makes a flag of each setting.
func Register(f *pflag.FlagSet, settings []Setting) {
	for _, s := range settings {
		help := strings.ReplaceAll(s.Help, "`", "")
		if s.Auto != "" {
			help += "; by default " + strings.ReplaceAll(s.Auto, "`", "")
		}
		switch v := s.Value.(type) {
		case *string:
			f.StringVar(v, s.Name, *v, help)
		case *bool:
			f.BoolVar(v, s.Name, *v, help)
		case *int:
			f.IntVar(v, s.Name, *v, help)
		case *int64:
			f.Var((*size)(v), s.Name, help)
		case *time.Duration:
			DurationVar(f, v, s.Name, *v, help)
		case *[]string:
			f.StringSliceVar(v, s.Name, *v, help)
		case *Services:
			f.Var((*serviceMap)(v), s.Name, help)
		default:
			panic(fmt.Sprintf("setting %s: %T", s.Name, s.Value))
		}
		if s.Auto != "" { // Help says it
			f.Lookup(s.Name).DefValue = ""
		}
	}
}

// Check returns every problem of the values, joined. f tells which settings were given.
func Check(f *pflag.FlagSet, settings []Setting) error {
	var errs []error
	for _, s := range settings {
		if err := s.check(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.Name, err))
		}
		if s.Needs != "" && f.Changed(s.Name) && !f.Changed(s.Needs) {
			errs = append(errs, fmt.Errorf("%s: has no effect without %s", s.Name, s.Needs))
		}
	}
	return errors.Join(errs...)
}

func (s Setting) check() error {
	if s.Check != nil {
		return s.Check()
	}
	negative := false
	switch v := s.Value.(type) {
	case *int:
		negative = *v < 0
	case *int64:
		negative = *v < 0
	case *time.Duration:
		negative = *v < 0
	}
	if negative {
		return fmt.Errorf("%s is negative", s.Text())
	}
	return nil
}

// Text returns the value in the form of the documentation.
func (s Setting) Text() string {
	switch v := s.Value.(type) {
	case *string:
		if *v == "" {
			return "none"
		}
		return "`" + *v + "`"
	case *bool:
		return strconv.FormatBool(*v)
	case *int:
		return number(*v)
	case *int64:
		return (*size)(v).String()
	case *time.Duration:
		return (*span)(v).String()
	case *[]string:
		if len(*v) == 0 {
			return "none"
		}
		return strings.Join(*v, ", ")
	case *Services:
		if len(*v) == 0 {
			return "none"
		}
		return "`" + (*serviceMap)(v).String() + "`"
	}
	return ""
}

// number formats 100000 as 100,000.
func number(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
