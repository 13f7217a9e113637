package release

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/graph/kinds"
)

// lastMajor returns the major of the last version; 0 if there are none. This is the major of the newest catalogue, even
// if none of its versions is served any more.
func lastMajor(versions []*Version) int {
	if len(versions) == 0 {
		return 0
	}
	return versions[len(versions)-1].Major
}

// majorName returns the name of a major, such as v2.
func majorName(major int) string { return fmt.Sprintf("v%d", major) }

// drop sets Dropped for the versions that are not served because a version two majors newer was released.
func drop(versions []*Version) {
	oldest := lastMajor(versions) - catalogue.ServedMajors + 1
	for _, v := range versions {
		if v.Major >= oldest || !v.Served() {
			continue
		}
		v.Dropped = true
		why := fmt.Sprintf("%s was released, and a gateway serves %d majors", majorName(lastMajor(versions)), catalogue.ServedMajors)
		if v.Why != "" {
			why += "; " + v.Why
		}
		v.Why = why
	}
}

// Dropped returns the versions whose State.Dropped is set.
func Dropped(versions []*Version) (out []*Version) {
	for _, v := range versions {
		if v.Dropped {
			out = append(out, v)
		}
	}
	return out
}

// servedOf returns the versions of a major that are served.
func servedOf(versions []*Version, major int) (out []*Version) {
	for _, v := range versions {
		if v.Major == major && v.Served() {
			out = append(out, v)
		}
	}
	return out
}

// Previous is the catalogue of the previous major. It comes from the sources of the last served version of that major,
// and is used for all its served versions.
type Previous struct {
	Schema *kinds.Schema
	API    *ast.Schema
	// served are the versions of the major that are served, the oldest first.
	served []*Version
}

// ReadPrevious reads the catalogue of the previous major; nil if none of its versions is served.
func ReadPrevious(versions []*Version) (*Previous, error) {
	return readMajor(versions, lastMajor(versions)-1)
}

// readMajor reads the catalogue of a major from the sources of its last served version; nil if none is served.
func readMajor(versions []*Version, major int) (*Previous, error) {
	served := servedOf(versions, major)
	if len(served) == 0 {
		return nil, nil
	}
	schema, err := served[len(served)-1].Schema()
	if err != nil {
		return nil, err
	}
	api, err := schema.API()
	if err != nil {
		return nil, err
	}
	return &Previous{Schema: schema, API: api, served: served}, nil
}

// Major returns the previous major.
func (p *Previous) Major() int { return p.last().Major }

// last returns the version with the sources of the catalogue.
func (p *Previous) last() *Version { return p.served[len(p.served)-1] }

// CheckMajor returns what prevents the newest catalogue from being released as the next major, while the last major is
// served too. It returns [kinds.Findings]; nil if there are none.
func CheckMajor(versions []*Version, newest Newest) error {
	previous, err := readMajor(versions, lastMajor(versions))
	if err != nil {
		return err
	}
	return previous.Check(majorName(lastMajor(versions)+1), newest)
}

// Check returns what prevents the newest catalogue from being served together with the previous major, as
// [kinds.Findings]; nil if there are none. name is the major of the newest catalogue. Both majors are served from the
// same stored resources. Therefore each value must have the same stored form in both majors, and each major must be
// able to read what clients of the other write. A nil Previous accepts everything.
func (p *Previous) Check(name string, newest Newest) error {
	if p == nil {
		return nil
	}
	c := &majors{previous: p, newest: name, places: catalogue.Places(newest.Schema.Places(newest.Dir))}
	was, is := p.Schema.Descriptors(), newest.Schema.Descriptors()
	for i := range is {
		for j := range was {
			if was[j].Name == is[i].Name {
				c.kind(&was[j], &is[i])
			}
		}
	}
	c.guards(is, catalogue.Union(is, was))
	if err := checkMinor(p.served, Newest{Schema: p.Schema, API: p.API, Dir: p.last().Dir()}); err != nil {
		found, ok := errors.AsType[kinds.Findings](err)
		if !ok {
			return err
		}
		c.findings = append(c.findings, found...)
	}
	if len(c.findings) == 0 {
		return nil
	}
	c.findings.Sort()
	return c.findings
}

// majors is the state of [Previous.Check].
type majors struct {
	previous *Previous
	// newest is the name of the major of the newest catalogue.
	newest   string
	places   catalogue.Places
	findings kinds.Findings
	// filtered are the paths of the current kind that are indexed in the previous major.
	filtered map[string]bool
	// path is the path of the kind or field that is being compared. It has stored names and begins with the kind.
	path string
}

// report adds a finding about the kind or field that is being compared.
func (c *majors) report(format string, args ...any) {
	place := ""
	for at := c.path; at != "" && place == ""; at = at[:max(strings.LastIndex(at, "."), 0)] {
		place = c.places.Fields[at]
	}
	file, line := splitPlace(place)
	c.findings = append(c.findings, kinds.Finding{
		File: file,
		Line: line,
		Message: fmt.Sprintf("%s cannot be served beside %s: %s %s",
			c.newest, c.previous.last(), c.path, fmt.Sprintf(format, args...)),
	})
}

// kind compares a kind in both majors.
func (c *majors) kind(was, is *descriptor.Kind) {
	c.path = is.Name
	if was.Scope != is.Scope {
		c.report("was %s and is %s; declare a kind of another name", was.Scope, is.Scope)
	}
	if was.Sensitive != is.Sensitive {
		c.report("is sensitive in one of them alone; declare a kind of another name")
	}
	if was.Service != is.Service {
		c.report("is %s and was %s; declare a kind of another name", ownerOf(is), ownerOf(was))
	}
	c.filtered = map[string]bool{}
	for _, f := range was.FilterableFields {
		c.filtered[is.Name+"."+f.Path] = true
	}
	for _, r := range was.References {
		c.filtered[is.Name+"."+r.Path] = true
	}
	c.shapes(is.Name+".spec", was.Spec, is.Spec)
	c.shapes(is.Name+".status", was.Status, is.Status)
}

// ownerOf returns the owner of a kind's resources, for messages.
func ownerOf(k *descriptor.Kind) string {
	if k.Service == "" {
		return "stored by the gateway itself"
	}
	return fmt.Sprintf("owned by service %q", k.Service)
}

// shapes compares the objects at a path. Fields are matched by their stored names.
func (c *majors) shapes(path string, was, is *descriptor.Shape) {
	if was == nil || is == nil {
		return
	}
	for i := range was.Fields {
		f := &was.Fields[i]
		if now := is.Field(f.Name); now != nil {
			c.field(path, f, now)
			continue
		}
		c.path = path + "." + f.Name
		if f.Required {
			c.report("is gone, and clients of %s rely on its value, which those of %s do not set; keep it with its !, "+
				"or release a minor version of v%d first, in which it has a @default", c.previous.last(), c.newest, c.previous.Major())
		}
	}
	for i := range is.Fields {
		f := &is.Fields[i]
		if was.Field(f.Name) == nil && f.Required {
			c.path = path + "." + f.Name
			c.report("is new and required, and clients of %s do not set it; give it a @default, or leave it optional",
				c.previous.last())
		}
	}
}

// field compares a field of objects at a path.
func (c *majors) field(path string, was, is *descriptor.Field) {
	c.path = path + "." + is.Name
	last := c.previous.last()
	const another = "store the new form under another name, by @stored(as:) or by another name of the field"
	switch {
	case was.Type != is.Type || was.List != is.List:
		c.report("was %s and is %s, and both are stored as %q; %s", typeOf(was), typeOf(is), is.Name, another)
		return
	case was.WriteOnly != is.WriteOnly:
		c.report("is @writeOnly in one of them alone, and both are stored as %q; %s", is.Name, another)
		return
	case was.Required && !is.Required:
		c.report("is not required any more, and clients of %s rely on its value; keep the !, or release a minor "+
			"version of v%d first, in which it has a @default", last, c.previous.Major())
	case is.Required && !was.Required:
		c.report("is required, and clients of %s need not set it; give it a @default, or leave it optional", last)
	}
	if was.Default != is.Default && c.filtered[c.path] {
		c.report("has not the default that it has in %s, where filters, orders or references use it; keep the default, "+
			"or %s", last, another)
	}
	c.shapes(path+"."+is.Name, was.Shape, is.Shape)
}

// typeOf returns the type of a field, for messages.
func typeOf(f *descriptor.Field) string {
	if f.List {
		return fmt.Sprintf("a list of %s", f.Type)
	}
	return string(f.Type)
}

// guards checks the guarded references that only the previous major has. Together with those of the newest major they
// must not form a cycle, because no resource in it could ever be deleted. Resources of the two kinds of such a
// reference must not expire.
func (c *majors) guards(newest, stored []descriptor.Kind) {
	of := func(name string) *descriptor.Kind {
		for i := range stored {
			if stored[i].Name == name {
				return &stored[i]
			}
		}
		return &descriptor.Kind{}
	}
	for i := range stored {
		k := &stored[i]
		for _, r := range k.References {
			if !r.Guarded || hasReference(newest, k.Name, r.Path) {
				continue
			}
			c.path = k.Name + "." + r.Path
			const advice = "release a minor version first, in which it is not guarded, or withdraw the versions of the older major"
			if guardsBack(of, r.Kind, k.Name, map[string]bool{}) {
				c.report("is gone and still guarded for clients of %s, and the guards of both lead from kind %s back to itself; %s",
					c.previous.last(), k.Name, advice)
			}
			if k.Expires || of(r.Kind).Expires {
				c.report("is gone and still guarded for clients of %s, and resources of kind %s or %s can expire; %s",
					c.previous.last(), k.Name, r.Kind, advice)
			}
		}
	}
}

// hasReference reports whether a kind has a reference at a path.
func hasReference(kinds []descriptor.Kind, name, path string) bool {
	for i := range kinds {
		for _, r := range kinds[i].References {
			if kinds[i].Name == name && r.Path == path {
				return true
			}
		}
	}
	return false
}

// guardsBack reports whether a chain of guarded references leads from one kind to another.
func guardsBack(of func(string) *descriptor.Kind, from, to string, seen map[string]bool) bool {
	if from == to {
		return true
	}
	if seen[from] {
		return false
	}
	seen[from] = true
	for _, r := range of(from).References {
		if r.Guarded && guardsBack(of, r.Kind, to, seen) {
			return true
		}
	}
	return false
}
