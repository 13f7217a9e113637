package service_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// longestPrefix is the longest text that is a prefix of addresses.
const longestPrefix = "0000:0000:0000:0000:0000:ffff:255.255.255.255/128"

// misfits are strings of an acceptable length that no format and few patterns take.
func misfits(c descriptor.Constraint) []string {
	n := 1
	if c.MinLength != nil {
		n = max(n, *c.MinLength)
	}
	return []string{strings.Repeat(",", n), strings.Repeat("-", n), strings.Repeat("!", n)}
}

// textOf returns a string of n characters that a field takes, if there is one. The
// characters are of two bytes each, where the field takes them.
func textOf(c descriptor.Constraint, n int) (string, bool) {
	candidates := []string{strings.Repeat("é", n), strings.Repeat("a", n), strings.Repeat("9", n), "a:" + strings.Repeat("a", max(n-2, 0)), "N" + strings.Repeat("a", max(n-1, 0))}
	switch c.Format {
	case descriptor.FormatUUID:
		candidates = []string{uuidOf(n)}
	case descriptor.FormatDuration:
		candidates = []string{"0", strings.Repeat("0", max(n-2, 0)) + "1s"}
	case descriptor.FormatCIDR:
		candidates = []string{"::/0", "10.0.0.0/8", longestPrefix}
	case descriptor.FormatDateTime:
		candidates = []string{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05." + strings.Repeat("0", max(n-21, 0)) + "Z"}
	case descriptor.FormatName:
		candidates = candidates[1:2]
	case descriptor.FormatBase64:
		candidates = []string{strings.Repeat("YWJj", n/4)}
	}
	if len(c.In) > 0 {
		candidates = c.In
	}
	return first(candidates, func(s string) bool { return utf8.RuneCountInString(s) == n && matches(c.Pattern, s) })
}

// member is the i-th of different strings that a field takes.
func member(c descriptor.Constraint, i int) string {
	least, most := 0, 1<<20
	if c.MinLength != nil {
		least = *c.MinLength
	}
	if c.MaxLength != nil {
		most = *c.MaxLength
	}
	switch c.Format {
	case descriptor.FormatUUID:
		return fmt.Sprintf("%08x%s", i, uuidOf(28))
	case descriptor.FormatDuration:
		return strconv.Itoa(i) + "s"
	case descriptor.FormatCIDR:
		return fmt.Sprintf("10.%d.%d.0/24", i/256, i%256)
	case descriptor.FormatDateTime:
		return fmt.Sprintf("2026-01-02T%02d:%02d:05Z", i/60, i%60)
	case descriptor.FormatBase64:
		return fmt.Sprintf("%04d", i)
	}
	if len(c.In) > 0 {
		return c.In[i%len(c.In)]
	}
	letters := string([]byte{byte('a' + i/26/26%26), byte('a' + i/26%26), byte('a' + i%26)})
	s, ok := first([]string{letters, letters[1:], letters[2:], letters + strings.Repeat("a", max(least-3, 0)), "https://" + letters, "N" + letters}, func(s string) bool {
		return len(s) >= least && len(s) <= most && matches(c.Pattern, s)
	})
	if !ok {
		panic(fmt.Sprintf("nothing here fits the pattern %q with %d to %d characters: give it a candidate", c.Pattern, least, most))
	}
	return s
}

// uuidOf is a UUID of n characters, which only 36 are one.
func uuidOf(n int) string {
	return strings.Repeat("0", max(n-28, 0)) + "-e89b-12d3-a456-426614174000"
}

func first(candidates []string, ok func(string) bool) (string, bool) {
	if i := slices.IndexFunc(candidates, ok); i >= 0 {
		return candidates[i], true
	}
	return "", false
}

func matches(pattern, s string) bool {
	return pattern == "" || regexp.MustCompile(pattern).MatchString(s)
}

// needs are values that rules of a shape ask for while a field is probed.
func needs(s *descriptor.Shape, field string) map[string]any {
	out := map[string]any{}
	all := func(names ...string) {
		for _, name := range names {
			out[name] = sample(s.Field(name), 0)
		}
	}
	either := func(names ...string) {
		if !slices.Contains(names, field) {
			all(names[0])
		}
	}
	switch s.Name {
	case "SecurityGroupRule":
		out["protocol"] = "gre" // others bound the port numbers further
	case "ServerGroupResourceSpec":
		out["policy"] = "anti-affinity" // others have no maxServerPerHost
	case "FloatingIPResourceSpec":
		either("floatingNetworkRef", "floatingSubnetRef")
	case "RoleAssignmentResourceSpec":
		either("userRef", "groupRef")
		either("projectRef", "domainRef")
	case "ServerResourceSpec":
		either("imageRef", "bootVolume")
	case "ShareNetworkResourceSpec":
		all("networkRef", "subnetRef")
	case "RouterInterfaceSpec":
		all("subnetRef")
	case "ImageResourceSpec":
		all("content")
	case "AccessBindingSpec":
		either("users", "groups")
	}
	return out
}

// object returns the least object of a shape that is acceptable and has a field.
func object(s *descriptor.Shape, field string, value any) map[string]any {
	out := map[string]any{}
	for i := range s.Fields {
		if f := &s.Fields[i]; f.Required {
			out[f.Name] = sample(f, 0)
		}
	}
	maps.Copy(out, needs(s, field))
	managed := s.Field("managementPolicy") != nil && s.Field("resource") != nil && s.Field("import") != nil
	switch {
	case managed && field == "import":
		out["managementPolicy"] = "unmanaged"
	case managed:
		out["resource"] = sample(s.Field("resource"), 0)
	}
	if field != "" {
		out[field] = value
	}
	fill(s, out, s.MinProperties)
	return out
}

// fill adds fields until there are n.
func fill(s *descriptor.Shape, out map[string]any, n int) {
	for i := range s.Fields {
		f := &s.Fields[i]
		if _, ok := out[f.Name]; !ok && len(out) < n {
			out[f.Name] = sample(f, 0)
		}
	}
}

// sample is the i-th of different values that a field takes.
func sample(f *descriptor.Field, i int) any {
	if f.List {
		n := 0
		if f.Constraint.MinItems != nil {
			n = *f.Constraint.MinItems
		}
		return list(f, n)
	}
	return element(f, i)
}

// list has n different elements.
func list(f *descriptor.Field, n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = element(f, i)
	}
	return out
}

// element is the i-th of different values, for a list those of its elements.
func element(f *descriptor.Field, i int) any {
	c := f.Constraint
	switch f.Type {
	case descriptor.TypeObject:
		out := object(f.Shape, "", nil)
		for _, k := range f.Keys {
			out[k] = element(f.Shape.Field(k), i)
		}
		return out
	case descriptor.TypeMap:
		n := 1
		if c.MinItems != nil {
			n = *c.MinItems
		}
		return mapping(f, n)
	case descriptor.TypeEnum:
		if f.Default != nil && i == 0 {
			return f.Default
		}
		return f.Enum.Values[i%len(f.Enum.Values)].Stored
	case descriptor.TypeBoolean:
		return true
	case descriptor.TypeTime:
		return fmt.Sprintf("2026-01-02T%02d:%02d:05Z", i/60, i%60)
	case descriptor.TypeInt, descriptor.TypeSafeInt, descriptor.TypeFloat:
		least := 4.0 // ipVersion is 4 or 6
		if c.Min != nil {
			least = *c.Min
		}
		return numeral(least + float64(i))
	}
	return member(c, i)
}

// mapping has n different keys.
func mapping(f *descriptor.Field, n int) map[string]any {
	c := f.Constraint
	out := map[string]any{}
	for i := range n {
		out[member(keys(c), i)] = member(c, 0)
	}
	return out
}

// keys is what a map asks of its keys, which have 1 to 253 characters unless it says otherwise.
func keys(c descriptor.Constraint) descriptor.Constraint {
	least, most := 1, 253
	if c.KeyMinLength != nil {
		least = *c.KeyMinLength
	}
	if c.KeyMaxLength != nil {
		most = *c.KeyMaxLength
	}
	return descriptor.Constraint{MinLength: &least, MaxLength: &most, Pattern: c.KeyPattern}
}

func numeral(x float64) json.Number {
	return json.Number(strconv.FormatFloat(x, 'f', -1, 64))
}
