package descriptor_test

import (
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/descriptor"
)

func TestTime_ATimeIsReadAsRFC3339SaysAndKeptWhole(t *testing.T) {
	for text, want := range map[string]string{
		"2026-01-31T12:00:00Z":                "2026-01-31T12:00:00Z",
		"2026-01-31t12:00:00.500z":            "2026-01-31T12:00:00.5Z",
		"2026-01-31T12:00:00.123456789+23:59": "2026-01-30T12:01:00.123456789Z",
		"0000-01-01T00:00:00Z":                "0000-01-01T00:00:00Z",
		"9999-12-31T23:59:59.999999999Z":      "9999-12-31T23:59:59.999999999Z",
		"0000-01-01T00:00:00-00:01":           "0000-01-01T00:01:00Z",
	} {
		got, err := descriptor.ParseTime(text)
		if err != nil || descriptor.FormatTime(got) != want {
			t.Errorf("%s: %s %v; want %s", text, descriptor.FormatTime(got), err, want)
		}
	}
	for _, text := range []string{
		"", "now", "2026-01-31", "2026-01-31T12:00:00", "2026-01-31 12:00:00Z", "2026-01-31T12:00:00,5Z", "2026-01-31T12:00:00+24:00", "2026-01-31T12:00:00+01:60",
		"2016-12-31T23:59:60Z", "2026-01-31T12:00:00.1234567890Z", "9999-12-31T23:59:59-00:01", "0000-01-01T00:00:00+00:01", "2026-02-30T00:00:00Z", "2026-01-31T1:00:00Z", "+2026-01-31T12:00:00Z",
	} {
		if got, err := descriptor.ParseTime(text); err == nil {
			t.Errorf("%q was read as %s", text, got)
		}
	}
}

func FuzzParseTime(f *testing.F) {
	f.Add("2026-01-31T12:00:00.5+02:00")
	f.Fuzz(func(t *testing.T, text string) {
		at, err := descriptor.ParseTime(text)
		if err != nil {
			return
		}
		again, err := descriptor.ParseTime(descriptor.FormatTime(at))
		if err != nil || !again.Equal(at) || at.Location() != time.UTC {
			t.Errorf("%q: %s, then %s %v", text, at, again, err)
		}
	})
}
