package release

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Number is the number of a version. Its parts are compared as numbers: v1.10 is newer than v1.9.
type Number struct{ Major, Minor int }

// numberForm matches the only accepted form of a number, in the names of folders and in URL paths.
var numberForm = regexp.MustCompile(`^v([1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})$`)

// ParseNumber parses a number such as v1.10. Other forms, such as v01.1, v1 and v1.1.0, are errors.
func ParseNumber(text string) (Number, error) {
	parts := numberForm.FindStringSubmatch(text)
	if parts == nil {
		return Number{}, fmt.Errorf(
			"%q is no version: MAJOR.MINOR is accepted, such as v1.0, with a major from 1 and no leading zeros", text)
	}
	major, _ := strconv.Atoi(parts[1]) // digits, by numberForm
	minor, _ := strconv.Atoi(parts[2])
	return Number{Major: major, Minor: minor}, nil
}

// ParseVersion is like [ParseNumber], and accepts a number without the v, too.
func ParseVersion(text string) (Number, error) {
	number, err := ParseNumber("v" + strings.TrimPrefix(text, "v"))
	if err != nil {
		_, err = ParseNumber(text) // it quotes the text as it was given
	}
	return number, err
}

// String returns the number in the form v1.10.
func (n Number) String() string { return fmt.Sprintf("v%d.%d", n.Major, n.Minor) }

// Compare returns a negative number if n is older than o, a positive one if it is newer, and 0 if they are equal.
func (n Number) Compare(o Number) int {
	return cmp.Or(cmp.Compare(n.Major, o.Major), cmp.Compare(n.Minor, o.Minor))
}
