package catalogue

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// Compare returns all differences between two catalogues that clients, authors of manifests or stored resources may
// notice, the most severe first. See [Diff] for only the differences that concern stored resources.
func Compare(from, to []descriptor.Kind) []Difference {
	out := Diff(OutlineOf(from), OutlineOf(to))
	for i := range from {
		if j := slices.IndexFunc(to, func(k descriptor.Kind) bool { return k.Name == from[i].Name }); j >= 0 {
			c := comparison{kind: from[i].Name}
			c.kinds(&from[i], &to[j])
			out = append(out, c.changes...)
		}
	}
	sortBySeverity(out)
	return out
}

// CompareServed is like [Compare] for a newer catalogue that is served beside an older major version. What is gone from
// the newer one breaks only clients if the older major version still has it. stored is the [Union] of to and the older
// major version: resources are stored with these kinds.
func CompareServed(from, to, stored []descriptor.Kind) []Difference {
	out := Compare(from, to)
	breaking := Breaking(Diff(OutlineOf(from), OutlineOf(stored)))
	for i := range out {
		d := &out[i]
		if d.kept == "" || slices.ContainsFunc(breaking, func(b Difference) bool {
			return b.Kind == d.Kind && b.Path == d.Path && b.kept == d.kept
		}) {
			continue
		}
		d.What = d.kept
		d.Severity = BreaksClients
	}
	sortBySeverity(out)
	return out
}

// sortBySeverity sorts changes, the most severe first.
func sortBySeverity(changes []Difference) {
	slices.SortStableFunc(changes, func(a, b Difference) int { return cmp.Compare(b.Severity, a.Severity) })
}

// comparison collects the differences of one kind.
type comparison struct {
	kind    string
	changes []Difference
}

func (c *comparison) add(path string, s Severity, format string, args ...any) {
	c.changes = append(c.changes, Difference{Kind: c.kind, Path: path, What: fmt.Sprintf(format, args...), Severity: s})
}

// renamed adds a difference if a name that clients or manifests use has changed.
func (c *comparison) renamed(path, what, was, is string) {
	switch {
	case was == is:
	case was == "":
		c.add(path, Safe, "has the %s %s", what, is)
	case is == "":
		c.add(path, BreaksClients, "has no %s any more; it was %s", what, was)
	default:
		c.add(path, BreaksClients, "had the %s %s and has %s", what, was, is)
	}
}

// moved is like renamed, for a name that determines where the values of a field are. A name that is added also breaks
// clients, because they look for the values in the old place.
func (c *comparison) moved(path, what, was, is string) {
	if was == "" && is != "" {
		c.add(path, BreaksClients, "has the %s %s now", what, is)
		return
	}
	c.renamed(path, what, was, is)
}

// words compares lists of names. It adds a difference with the severity lost for each removed name, and one for each
// new name.
func (c *comparison) words(path, what string, was, is []string, lost Severity) {
	for _, word := range was {
		if !slices.Contains(is, word) {
			c.add(path, lost, "has no %s %s any more", what, word)
		}
	}
	for _, word := range is {
		if !slices.Contains(was, word) {
			c.add(path, Safe, "has the new %s %s", what, word)
		}
	}
}

// shortNames compares the short names of a kind. Its differences about removed names have ShortName set.
func (c *comparison) shortNames(was, is []string) {
	before := len(c.changes)
	c.words("", "short name", was, is, Dangerous)
	for i := range c.changes[before:] {
		d := &c.changes[before+i]
		d.ShortName = d.Severity == Dangerous
	}
}

// graded is the text of a change and its severity.
type graded struct {
	severity Severity
	text     string
}

// toggled adds a difference if a property was set or removed.
func (c *comparison) toggled(path string, was, is bool, set, unset graded) {
	switch {
	case is && !was:
		c.add(path, set.severity, "%s", set.text)
	case was && !is:
		c.add(path, unset.severity, "%s", unset.text)
	}
}

func (c *comparison) kinds(was, is *descriptor.Kind) {
	c.renamed("", "singular", was.Singular, is.Singular)
	c.renamed("", "plural", was.Plural, is.Plural)
	c.renamed("", "apiVersion", was.APIVersion(), is.APIVersion())
	c.shortNames(was.ShortNames, is.ShortNames)
	c.words("", "verb", verbs(was), verbs(is), BreaksClients)
	c.words("", "sub-kind", was.SubKinds, is.SubKinds, BreaksClients)
	c.words("", "filterable field", filterable(was, false), filterable(is, false), BreaksClients)
	c.words("", "sortable field", filterable(was, true), filterable(is, true), BreaksClients)
	c.toggled("", was.Expires, is.Expires,
		graded{Safe, "takes expiresAt now"},
		graded{BreaksClients, "does not take expiresAt any more"})
	c.toggled("", was.OutOfMemory, is.OutOfMemory,
		graded{Dangerous, "is not kept in memory any more: filters and orders scan, up to limit-rows"},
		graded{Safe, "is kept in memory now"})
	c.reviews(was, is)
	c.described("", was.Description, is.Description)
	if !slices.Equal(was.Columns, is.Columns) {
		c.add("", Safe, "has other columns")
	}
	for i := range was.References {
		old := &was.References[i]
		j := slices.IndexFunc(
			is.References, func(r descriptor.Reference) bool { return r.Path == old.Path && r.Kind == old.Kind },
		)
		if j < 0 {
			continue // Diff reports it
		}
		c.renamed(old.Path, "derived field", old.Field, is.References[j].Field)
		c.renamed(old.Path, "inverse", old.Inverse, is.References[j].Inverse)
	}
	c.shapes("spec", was.Spec, is.Spec)
	c.shapes("status", was.Status, is.Status)
}

// reviews compares the services that review changes. A new reviewer does not break clients, because clients must expect
// refusals anyway.
func (c *comparison) reviews(was, is *descriptor.Kind) {
	switch {
	case was.Review == is.Review && is.Review != "":
		c.toggled("", was.ReviewAllowsFailure, is.ReviewAllowsFailure,
			graded{Dangerous, "takes changes unreviewed now while the service that reviews them does not answer"},
			graded{Dangerous, "refuses changes now while the service that reviews them does not answer"})
	case was.Review == is.Review:
	case is.Review == "":
		c.add("", Safe, "is not reviewed by service %q any more", was.Review)
	case was.Review == "":
		c.add("", Dangerous, "is reviewed by service %q now, which may refuse changes", is.Review)
	default:
		c.add("", Dangerous, "was reviewed by service %q and is by %q, which may refuse other changes", was.Review, is.Review)
	}
}

func verbs(k *descriptor.Kind) (out []string) {
	for _, v := range k.Verbs {
		out = append(out, string(v))
	}
	return out
}

func filterable(k *descriptor.Kind, sortable bool) (out []string) {
	for _, f := range k.FilterableFields {
		if f.Sortable || !sortable {
			out = append(out, f.Path)
		}
	}
	return out
}

func (c *comparison) described(path, was, is string) {
	if was != is {
		c.add(path, Safe, "is described differently")
	}
}

// shapes compares two objects at a path, including their fields.
func (c *comparison) shapes(path string, was, is *descriptor.Shape) {
	if was == nil || is == nil {
		return
	}
	c.renamed(path, "type", was.Name, is.Name)
	c.bounds(path, []bound{
		{"minimum of fields", number(was.MinProperties), number(is.MinProperties), false},
		{"maximum of fields", number(was.MaxProperties), number(is.MaxProperties), true},
	})
	for _, rule := range is.Rules {
		switch old := ruleOf(was, rule.CEL); {
		case old == nil:
			c.add(path, BreaksClients, "has a new rule: %s", rule.Message)
			c.changes[len(c.changes)-1].Rule = rule.CEL
		case old.Message != rule.Message:
			c.add(path, Safe, "has another message for a rule: %s", rule.Message)
		}
	}
	for _, rule := range was.Rules {
		if ruleOf(is, rule.CEL) == nil {
			c.add(path, Safe, "has not the rule any more: %s", rule.Message)
		}
	}
	for i := range was.Fields {
		if f := is.Field(was.Fields[i].Name); f != nil {
			c.fields(path+"."+f.Name, &was.Fields[i], f)
		}
	}
}

// ruleOf returns the rule of an object with the given expression, nil if there is none.
func ruleOf(s *descriptor.Shape, cel string) *descriptor.Rule {
	at := slices.IndexFunc(s.Rules, func(r descriptor.Rule) bool { return r.CEL == cel })
	if at < 0 {
		return nil
	}
	return &s.Rules[at]
}

func (c *comparison) fields(path string, was, is *descriptor.Field) {
	if was.Type != is.Type || was.List != is.List {
		return // Diff reports it
	}
	c.described(path, was.Description, is.Description)
	switch {
	case was.Deprecated == is.Deprecated:
	case is.Deprecated == "":
		c.add(path, Safe, "is not deprecated any more")
	default:
		c.add(path, Safe, "is deprecated: %s", is.Deprecated)
	}
	c.toggled(path, was.Immutable, is.Immutable,
		graded{BreaksClients, "is immutable now"},
		graded{Safe, "is not immutable any more"})
	c.renamed(path, "name in the API", was.InAPI(), is.InAPI())
	c.moved(path, "place in manifests", was.ManifestAt, is.ManifestAt)
	c.moved(path, "mergeInto", was.MergeInto, is.MergeInto)
	if !reflect.DeepEqual(was.Default, is.Default) {
		c.add(path, Dangerous, "had the default %s and has %s", text(was.Default), text(is.Default))
		c.changes[len(c.changes)-1].Default = true
	}
	if was.ListType != is.ListType || !slices.Equal(was.Keys, is.Keys) {
		c.add(path, BreaksClients, "was a list of type %s and is %s: elements are told apart differently", listType(was), listType(is))
	}
	c.enums(path, was.Enum, is.Enum)
	c.constraints(path, &was.Constraint, &is.Constraint)
	c.shapes(path, was.Shape, is.Shape)
}

func text(value any) string {
	if value == nil {
		return "none"
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(raw)
}

func listType(f *descriptor.Field) string {
	return strings.TrimSpace(string(f.ListType) + " " + strings.Join(f.Keys, ","))
}

// enums compares the names of enum values. Diff compares their stored forms.
func (c *comparison) enums(path string, was, is *descriptor.Enum) {
	if was == nil || is == nil {
		return
	}
	c.renamed(path, "type", was.Name, is.Name)
	for _, old := range was.Values {
		for _, v := range is.Values {
			if v.Stored == old.Stored {
				if v.Name != old.Name {
					c.add(path, BreaksClients, "names the value %q %s, which was %s", v.Stored, v.Name, old.Name)
				}
				c.described(path, old.Description, v.Description)
			}
		}
	}
}

// bound is a limit of a value: was in the old catalogue, is in the new one; nil if there is no limit.
type bound struct {
	name    string
	was, is *float64
	most    bool // a maximum, not a minimum
}

// bounds adds a difference for each limit that has become tighter or looser.
func (c *comparison) bounds(path string, all []bound) {
	for _, b := range all {
		switch {
		case b.was == nil && b.is == nil, b.was != nil && b.is != nil && *b.was == *b.is:
		case b.is == nil:
			c.add(path, Safe, "has no %s any more", b.name)
		case b.was == nil:
			c.add(path, BreaksClients, "has the %s %v now", b.name, *b.is)
		case (*b.is < *b.was) == b.most:
			c.add(path, BreaksClients, "has the %s %v, tighter than %v", b.name, *b.is, *b.was)
		default:
			c.add(path, Safe, "has the %s %v, looser than %v", b.name, *b.is, *b.was)
		}
	}
}

// number returns a limit as a pointer; nil for zero, which means no limit.
func number(n int) *float64 {
	if n == 0 {
		return nil
	}
	return float(&n)
}

func float(n *int) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}

// constraints compares the constraints of a value. Patterns and formats cannot be compared, so a different one is
// treated as tighter.
func (c *comparison) constraints(path string, was, is *descriptor.Constraint) {
	c.bounds(path, []bound{
		{
			"minLength", float(was.MinLength), float(is.MinLength), false,
		}, {"maxLength", float(was.MaxLength), float(is.MaxLength), true},
		{"min", was.Min, is.Min, false}, {"max", was.Max, is.Max, true},
		{
			"minItems", float(was.MinItems), float(is.MinItems), false,
		}, {"maxItems", float(was.MaxItems), float(is.MaxItems), true},
		{"keyMinLength", float(was.KeyMinLength), float(is.KeyMinLength), false}, {"keyMaxLength", float(was.KeyMaxLength), float(is.KeyMaxLength), true},
	})
	for _, p := range []struct{ name, was, is string }{
		{
			"pattern", was.Pattern, is.Pattern,
		}, {"format", string(was.Format), string(is.Format)}, {"keyPattern", was.KeyPattern, is.KeyPattern},
	} {
		switch {
		case p.was == p.is:
		case p.is == "":
			c.add(path, Safe, "has no %s any more", p.name)
		default:
			c.add(path, BreaksClients, "has the %s %s now", p.name, p.is)
		}
	}
	switch {
	case len(was.In) == 0 && len(is.In) > 0:
		c.add(path, BreaksClients, "accepts only %s now", strings.Join(is.In, ", "))
	case len(was.In) > 0 && len(is.In) == 0:
		c.add(path, Safe, "accepts other texts now than %s", strings.Join(was.In, ", "))
	default:
		c.words(path, "accepted text", was.In, is.In, BreaksClients)
	}
	c.toggled(path, was.Unique, is.Unique,
		graded{BreaksClients, "has unique elements now"},
		graded{Safe, "may have equal elements now"})
}
