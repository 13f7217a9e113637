package release

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/graph/kinds"
)

// Newest is the newest catalogue, as it is in its folder now.
type Newest struct {
	Schema *kinds.Schema
	API    *ast.Schema
	// Dir is the folder of the catalogue.
	Dir string
}

// Check returns the changes of the newest catalogue that would break clients of released versions, as [kinds.Findings];
// nil if there are none. The newest catalogue belongs to the major of the last released version. It must also be
// compatible with the previous major, see [Previous.Check].
func Check(versions []*Version, newest Newest) error {
	major := lastMajor(versions)
	previous, err := ReadPrevious(versions)
	if err != nil {
		return err
	}
	var findings kinds.Findings
	for _, err := range []error{checkMinor(servedOf(versions, major), newest), previous.Check(majorName(major), newest)} {
		found, ok := errors.AsType[kinds.Findings](err)
		if err != nil && !ok {
			return err
		}
		findings = append(findings, found...)
	}
	if len(findings) == 0 {
		return nil
	}
	findings.Sort()
	return findings
}

// checkMinor returns the changes of the newest catalogue that would break clients of the served versions of its major.
// It compares the catalogue with the sources and the derived APIs of all these versions. The newest version would not
// be enough: when it was released, an older one may have been withdrawn, and so was not compared with it. Of a
// candidate, checkMinor compares only the derived API, because a candidate is served from that API alone.
func checkMinor(served []*Version, newest Newest) error {
	if len(served) == 0 {
		return nil
	}
	c := newComparison(newest)
	for _, v := range slices.Backward(Released(served)) {
		if err := c.compare(v); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for _, v := range served {
		_, missing := v.View(newest.API)
		for _, m := range missing {
			if c.explains(m) || seen[m.What] {
				continue
			}
			seen[m.What] = true
			c.findings = append(c.findings, v.missingFinding(m))
		}
	}
	if len(c.findings) == 0 {
		return nil
	}
	c.findings.Sort()
	return c.findings
}

// missingFinding returns a finding about a part of the version that the newest API lacks. Its place is the line of the
// part in the version.
func (v *Version) missingFinding(m Missing) kinds.Finding {
	message := fmt.Sprintf("clients of %s break: %s", v, m.What)
	if v.Candidate {
		message += "; it is a candidate, so it can be written again: sluice catalogue release"
	}
	return kinds.Finding{File: v.dir + "/" + APIFile, Line: max(m.Line, 1), Message: message}
}

// Changes returns the differences between the last version and the newest catalogue, which is to be released as number,
// the most severe first. There must be a version. If number begins a major, the last one is still served.
func Changes(versions []*Version, number Number, newest Newest) ([]catalogue.Difference, error) {
	last := versions[len(versions)-1]
	schema, err := last.Schema()
	if err != nil {
		return nil, err
	}
	was, is := schema.Descriptors(), newest.Schema.Descriptors()
	if number.Major == last.Major {
		return catalogue.Compare(was, is), nil
	}
	previous, err := readMajor(versions, last.Major)
	if err != nil || previous == nil {
		return catalogue.Compare(was, is), err
	}
	return catalogue.CompareServed(was, is, catalogue.Union(is, previous.Schema.Descriptors())), nil
}

// comparison compares the newest catalogue with the sources of versions.
type comparison struct {
	newest   Newest
	findings kinds.Findings
	// reported has the differences for which there is a finding already.
	reported map[string]bool
	// broken has the kinds with findings. owners maps the name of a type to the kinds to which the type belongs.
	broken map[string]bool
	owners map[string]map[string]bool
}

func newComparison(newest Newest) *comparison {
	c := &comparison{
		newest:   newest,
		reported: map[string]bool{},
		broken:   map[string]bool{},
		owners:   map[string]map[string]bool{},
	}
	c.own(newest.Schema.Descriptors())
	return c
}

// compare compares the newest catalogue with the sources of a version. If the APIFile of the version was changed after
// its release, it adds only a finding about that.
func (c *comparison) compare(v *Version) error {
	if found := v.checkFile(); found != nil {
		c.findings = append(c.findings, *found)
		return nil
	}
	released, err := v.Schema()
	if err != nil {
		return err
	}
	was, is := released.Descriptors(), c.newest.Schema.Descriptors()
	c.own(was)
	places := catalogue.Places(c.newest.Schema.Places(c.newest.Dir))
	releasedPlaces := released.Places(v.dir)
	for _, d := range places.Locate(catalogue.Compare(was, is)) {
		advice := v.advice(d, was, is)
		if advice == "" {
			continue
		}
		c.broken[d.Kind] = true
		switch {
		case d.Gone && d.Path == "":
			d.Place = releasedPlaces.Fields[d.Kind]
		case d.Rule != "":
			d.Place = places.Types[d.Kind+"."+d.Path]
		}
		file, line := splitPlace(d.Place)
		d.Place = ""
		d.Severity = catalogue.Safe // without the mark of the severity in String
		if c.reported[d.String()] {
			continue
		}
		c.reported[d.String()] = true
		c.findings = append(c.findings, kinds.Finding{
			File:    file,
			Line:    line,
			Message: fmt.Sprintf("clients of %s break: %s; %s", v, d, advice),
		})
	}
	return nil
}

// splitPlace splits "file:line". Without a line, line is 1.
func splitPlace(place string) (file string, line int) {
	at := strings.LastIndex(place, ":")
	if at < 0 {
		return place, 1
	}
	line, err := strconv.Atoi(place[at+1:])
	if err != nil {
		return place, 1
	}
	return place[:at], line
}

// advice returns how a change can be made without breaking clients of the version; "" if it does not break them.
func (v *Version) advice(d catalogue.Difference, was, is []descriptor.Kind) string {
	later := "leave the change to the next major version (" + v.nextMajor() + ")"
	switch {
	case (d.Optional || d.Default) && defaulted(was, is, d):
		return ""
	case d.Gone:
		return "keep it, marked @deprecated, until the next major version (" + v.nextMajor() + ")"
	case d.Rule != "":
		before, now := shapeAt(was, d), shapeAt(is, d)
		if before == nil || now == nil || kinds.HoldsWithout(now, before, d.Rule) {
			return ""
		}
		return fmt.Sprintf("let the rule judge only fields that %s does not have, and hold where they are absent, or %s",
			v, later)
	case d.Required && fieldAt(was, d) == nil:
		return "give it a @default, or leave it optional"
	case d.Required:
		return "leave it optional, or " + later + ", with a @default"
	case d.ShortName:
		return "clients may name the kind by it: keep it until the next major version (" + v.nextMajor() + ")"
	case d.Default:
		return "declare another field with this default and mark this one @deprecated, or " + later
	case d.Severity >= catalogue.BreaksClients:
		return fmt.Sprintf("keep what %s has, and declare a field, value or kind of another name beside it, or %s", v, later)
	}
	return ""
}

// nextMajor returns the command that releases the next major version.
func (v *Version) nextMajor() string {
	return "sluice catalogue release " + strings.TrimPrefix(Number{Major: v.Major + 1}.String(), "v")
}

// defaulted reports whether a required field has become optional, with a default. Clients do not notice that: a value
// is in each answer and in each stored resource.
func defaulted(was, is []descriptor.Kind, d catalogue.Difference) bool {
	before, now := fieldAt(was, d), fieldAt(is, d)
	return before != nil && now != nil && before.Required && before.Default == nil && now.Default != nil
}

// fieldAt returns the field that a difference is about; nil if it is not about a field.
func fieldAt(all []descriptor.Kind, d catalogue.Difference) *descriptor.Field {
	for i := range all {
		if all[i].Name == d.Kind && strings.Contains(d.Path, ".") {
			f, _ := all[i].FieldAt(d.Path)
			return f
		}
	}
	return nil
}

// shapeAt returns the object that a difference is about.
func shapeAt(all []descriptor.Kind, d catalogue.Difference) *descriptor.Shape {
	for i := range all {
		k := &all[i]
		switch {
		case k.Name != d.Kind:
		case d.Path == "spec":
			return k.Spec
		case d.Path == "status":
			return k.Status
		default:
			if f, _ := k.FieldAt(d.Path); f != nil {
				return f.Shape
			}
		}
	}
	return nil
}

// own records the types that belong to each kind, including derived types.
func (c *comparison) own(all []descriptor.Kind) {
	for i := range all {
		k := &all[i]
		c.ownType(k.Name, k.Name)
		for _, name := range kinds.DerivedTypes(k.Name) {
			c.ownType(name, k.Name)
		}
		for _, name := range []string{k.Singular, k.Plural, kinds.SummaryField(k.Plural)} {
			c.ownType("Query."+name, k.Name)
		}
		c.ownShape(k.Spec, k.Name)
		c.ownShape(k.Status, k.Name)
	}
}

func (c *comparison) ownShape(s *descriptor.Shape, kind string) {
	if s == nil {
		return
	}
	for _, name := range []string{s.Name, kinds.InputType(s.Name), kinds.PatchType(s.Name), kinds.FilterType(s.Name)} {
		c.ownType(name, kind)
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		c.ownShape(f.Shape, kind)
		if f.Enum != nil {
			for _, name := range []string{
				f.Enum.Name, kinds.FilterType(f.Enum.Name), kinds.ListFilterType(f.Enum.Name),
			} {
				c.ownType(name, kind)
			}
		}
	}
}

func (c *comparison) ownType(name, kind string) {
	if c.owners[name] == nil {
		c.owners[name] = map[string]bool{}
	}
	c.owners[name][kind] = true
}

// explains reports whether a part is missing because of a change for which there is a finding: the part belongs to a
// kind with findings.
func (c *comparison) explains(m Missing) bool {
	for _, name := range []string{m.Type, m.Type + "." + m.Field, m.Of} {
		for kind := range c.owners[name] {
			if c.broken[kind] {
				return true
			}
		}
	}
	return false
}
