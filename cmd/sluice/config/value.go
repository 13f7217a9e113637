package config

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/internal/spelling"
)

// Refusal returns the error of parsing flags in plain words. For a wrong value, the message has the accepted values
// instead of the error of Go's parser. For an unknown flag, it has the flag that is spelled most like it.
func Refusal(flags *pflag.FlagSet, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if flag := similarFlag(flags, unknown.GetSpecifiedName()); flag != "" {
			return fmt.Errorf("%w; did you mean --%s?", err, flag)
		}
		return err
	}
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	return fmt.Errorf("--%s: %w",
		invalid.GetFlag().Name, refusedValue(invalid.GetFlag(), invalid.GetValue(), invalid.Unwrap()))
}

// similarFlag returns the name of the flag that is spelled most like a wrong name; "" if none is close.
func similarFlag(flags *pflag.FlagSet, wrong string) string {
	if len(wrong) < 2 { // it is a shorthand
		return ""
	}
	var names []string
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return spelling.Nearest(wrong, names)
}

func refusedValue(f *pflag.Flag, value string, cause error) error {
	if f.Value.Type() == "services" { // its errors quote what is wrong
		if invalid, ok := errors.AsType[*pflag.InvalidValueError](cause); ok {
			return invalid.Unwrap()
		}
		return cause
	}
	wanted := map[string]string{
		"int":      "a whole number of 64 bits",
		"bytes":    "a number of bytes like 1048576, 512KiB, 8MiB or 1GiB",
		"bool":     "true or false",
		"duration": "a duration like 90s, 10m, 1h30m or 7d",
	}[f.Value.Type()]
	if wanted == "" {
		return fmt.Errorf("%q is not acceptable: %w", value, cause)
	}
	return fmt.Errorf("%q is not %s", value, wanted)
}
