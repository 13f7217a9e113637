// Package config has the settings of a gateway. They are defined in one table. The flags, the environment variables,
// the keys of the configuration file, the checks and the documentation all follow from this table.
package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Setting defines a setting of a gateway.
type Setting struct {
	// Name is the name of the flag, and of the key in the configuration file.
	Name string
	// Value is a pointer to the value, whose initial value is the default. The value is a string, a bool, an int, a
	// duration, a list of strings, a [Services], or an int64, which is a number of bytes.
	Value any
	// Auto describes the default if it is computed.
	Auto string
	// Help describes the setting in one line.
	Help string
	// Why is the reason for the default. Only limits have one.
	Why string
	// Needs is the name of another setting without which this one has no effect.
	Needs string
	// Check returns an error if the value is not accepted. Default: an error for negative numbers and durations.
	Check func() error
}

// Register defines a flag for each setting.
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
		if s.Auto != "" { // Help has it
			f.Lookup(s.Name).DefValue = hiddenDefault(s.Value)
		}
	}
}

// hiddenDefault returns the default for which pflag prints none in the help. value is a pointer to the value.
func hiddenDefault(value any) string {
	if _, ok := value.(*int); ok {
		return "0"
	}
	return ""
}

// Check returns an error that joins all problems with the values. f has the flags, which show which settings were
// given.
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

// Text returns the value in the form in which the documentation has it.
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

// number formats a number with commas, such as 100,000.
func number(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
