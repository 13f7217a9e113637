package descriptor

import (
	"errors"
	"regexp"
	"strings"
	"time"
)

// timeForm matches RFC 3339 section 5.6 with at most nanoseconds.
var timeForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// ParseTime parses a time in RFC 3339 form and returns it in UTC. It refuses times that cannot be stored: with
// fractions of nanoseconds, with a leap second, or with a year that does not have four digits in UTC.
func ParseTime(text string) (time.Time, error) {
	text = strings.ToUpper(text) // T and Z may be in either case
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || !timeForm.MatchString(text) { // time.Parse also accepts other forms
		return time.Time{}, errors.New(`a time in RFC 3339 form is accepted, like "2026-01-31T12:00:00Z", with at most nine digits of a second`)
	}
	t = t.UTC()
	if year := t.Year(); year < 0 || year > 9999 {
		return time.Time{}, errors.New("years 0000 to 9999 in UTC are accepted")
	}
	return t, nil
}

// FormatTime formats a time in its stored form: RFC 3339 in UTC.
func FormatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
