package kinds

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/sluicegw/sluice/backend/descriptor"
)

func paragraph(text, more string) string {
	switch {
	case more == "":
		return text
	case text == "":
		return more
	}
	return strings.TrimRight(text, "\n") + "\n\n" + more
}

// sentence returns the message of a rule, with a full stop.
func sentence(message string) string {
	if message == "" || strings.HasSuffix(message, ".") {
		return message
	}
	return message + "."
}

// limits describes what a field accepts, for its description in the API.
func limits(f *descriptor.Field) string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	c := f.Constraint
	if f.Type == descriptor.TypeMap {
		return strings.Join(append(mapLimits(f), fixed(f)...), " ")
	}
	if f.List {
		if r := interval(c.MinItems, c.MaxItems, thousands); r != "" {
			distinct := ""
			if c.Unique || f.ListType == descriptor.ListSet {
				distinct = ", no two equal"
			}
			add("%s elements%s.", r, distinct)
		}
		if f.ListType == descriptor.ListMap {
			add("No two elements agree in %s.", strings.Join(f.Keys, ", "))
		}
	}
	each := map[bool]string{true: " each"}[f.List]
	if r := interval(c.MinLength, c.MaxLength, thousands); r != "" {
		add("%s characters%s.", r, each)
	}
	if r := interval(c.Min, c.Max, decimal); r != "" {
		add("%s%s.", r, each)
	}
	if c.Pattern != "" {
		add("Matches `%s`.", c.Pattern)
	}
	if f.Type == descriptor.TypeTime {
		add("RFC 3339.")
	}
	if c.Format != "" {
		add("Format: %s.", c.Format)
	}
	if len(c.In) > 0 {
		add("One of %s.", strings.Join(c.In, ", "))
	}
	if f.Shape != nil && !f.List {
		least, most := f.Shape.MinProperties, f.Shape.MaxProperties
		if r := interval(nonzero(least), nonzero(most), thousands); r != "" {
			add("%s of its fields.", r)
		}
	}
	if f.Default != nil {
		add("Absent means %s.", effective(f))
	}
	return strings.Join(append(out, fixed(f)...), " ")
}

// fixed describes whether a field is immutable or write-only.
func fixed(f *descriptor.Field) (out []string) {
	if f.Immutable {
		out = append(out, "Cannot be changed once it is set.")
	}
	switch {
	case f.MergeInto != "":
		out = append(out, "Never shown. Put into "+f.MergeInto+", whose other entries stay as they are.")
	case f.WriteOnly:
		out = append(out, "Never shown. Left out it stays as it is; null and what is empty clear it.")
	}
	return out
}

// statusLimits describes the maxima of a status field. The fields of an object are described separately.
func statusLimits(f *descriptor.Field) string {
	c := f.Constraint
	switch bounded := c.MaxLength != nil || c.MaxItems != nil || c.KeyMaxLength != nil; {
	case bounded && f.Shape != nil:
		return limits(f)
	case bounded:
		return strings.TrimSpace(limits(f) + " " + nothingElse)
	case f.Shape != nil && f.List:
		return unbounded
	case f.Shape != nil:
		return ""
	}
	return notValidated
}

// mapLimits describes what a map accepts.
func mapLimits(f *descriptor.Field) (out []string) {
	c := f.Constraint
	add := func(what, r, unit string) {
		if r != "" {
			out = append(out, what+r+" "+unit+".")
		}
	}
	add("", interval(c.MinItems, c.MaxItems, thousands), "entries, no two with one key")
	add("Keys: ", strings.ToLower(interval(c.KeyMinLength, c.KeyMaxLength, thousands)), "characters")
	if c.KeyPattern != "" {
		out = append(out, "Keys match `"+c.KeyPattern+"`.")
	}
	add("Values: ", strings.ToLower(interval(c.MinLength, c.MaxLength, thousands)), "characters")
	if c.Pattern != "" {
		out = append(out, "Values match `"+c.Pattern+"`.")
	}
	if c.Format != "" {
		out = append(out, "Format of values: "+string(c.Format)+".")
	}
	return out
}

func nonzero(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

// interval returns a text such as "1 to 255", "Exactly 1", "At most 64" or "At least 1"; "" if there are no limits.
func interval[T comparable](least, most *T, number func(T) string) string {
	switch {
	case least != nil && most != nil && *least == *most:
		return "Exactly " + number(*least)
	case least != nil && most != nil:
		return number(*least) + " to " + number(*most)
	case most != nil:
		return "At most " + number(*most)
	case least != nil:
		return "At least " + number(*least)
	}
	return ""
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// thousands formats a number with commas, such as 1,024.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// effective returns the default as the API shows it. For an enum it is the name of the value.
func effective(f *descriptor.Field) string {
	switch v := f.Default.(type) {
	case string:
		if f.Enum == nil {
			return strconv.Quote(v)
		}
		for _, e := range f.Enum.Values {
			if e.Stored == v {
				return e.Name
			}
		}
	case json.Number:
		return v.String()
	}
	return fmt.Sprint(f.Default)
}
