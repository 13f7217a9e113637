package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// envPrefix begins every environment variable of ours.
const envPrefix = "SLUICE_"

// configFlag names the flag of the configuration file; it is no key of the file.
const configFlag = "config"

// envName is the environment variable of a flag: listen is SLUICE_LISTEN.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// loadSettings fills the flags that the command line left out from the
// environment, then from the configuration file.
func loadSettings(cmd *cobra.Command) error {
	flags := cmd.Flags()
	var errs []error
	set := func(f *pflag.Flag, value, source string) {
		if err := flags.Set(f.Name, value); err != nil {
			errs = append(errs, usageError{fmt.Errorf("%s: %q is not acceptable: %w", source, value, err)})
		}
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if value, ok := os.LookupEnv(envName(f.Name)); ok && !f.Changed && f.Name != "help" {
			set(f, value, envName(f.Name))
		}
	})
	path := ""
	if f := flags.Lookup(configFlag); f != nil {
		path = f.Value.String()
	}
	if path == "" {
		return errors.Join(errs...)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return usageError{fmt.Errorf("configuration file: %w", err)}
	}
	values := map[string]any{}
	if err := yaml.UnmarshalStrict(raw, &values); err != nil {
		return usageError{fmt.Errorf("%s: %w", path, err)}
	}
	for key, value := range values {
		f := flags.Lookup(key)
		if f == nil || key == configFlag || key == "help" {
			errs = append(errs, usageError{fmt.Errorf("%s: unknown key %q%s", path, key, suggestKey(flags, key))})
			continue
		}
		if !f.Changed {
			set(f, settingText(value), path+": "+key)
		}
	}
	return errors.Join(errs...)
}

func settingText(value any) string {
	if list, ok := value.([]any); ok {
		parts := make([]string, len(list))
		for i, v := range list {
			parts[i] = fmt.Sprint(v)
		}
		return strings.Join(parts, ",")
	}
	if f, ok := value.(float64); ok && f == float64(int64(f)) {
		return fmt.Sprint(int64(f))
	}
	return fmt.Sprint(value)
}

func suggestKey(flags *pflag.FlagSet, key string) string {
	var keys []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != configFlag && f.Name != "help" {
			keys = append(keys, f.Name)
		}
	})
	best := slices.MinFunc(keys, func(a, b string) int {
		return levenshtein.ComputeDistance(a, key) - levenshtein.ComputeDistance(b, key)
	})
	if levenshtein.ComputeDistance(best, key) <= 3 {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return "; keys are " + strings.Join(keys, ", ")
}
