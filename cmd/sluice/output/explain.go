package output

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicegw/sluice/graph/client"
)

// Explain writes the description of a kind, or of the field at a path: its type, description, limits, default, values,
// and the fields of an object. If recursive is set, it writes the fields of all levels, without descriptions.
func Explain(to io.Writer, k client.Kind, path string, recursive bool) error {
	w := bufio.NewWriter(to)
	e := explanation{w: w, kind: k}
	_, _ = fmt.Fprintf(w, "KIND:     %s\nVERSION:  %s\n", k.Name, k.APIVersion)
	if path == "" {
		e.ofKind()
	} else if err := e.ofField(path); err != nil {
		return err
	}
	if len(e.below(path)) > 0 {
		_, _ = io.WriteString(w, "\nFIELDS:\n")
	}
	e.fields(path, "  ", recursive)
	return w.Flush()
}

// explanation is the state of [Explain].
type explanation struct {
	w    io.Writer
	kind client.Kind
}

func (e explanation) ofKind() {
	k := e.kind
	_, _ = fmt.Fprintf(e.w, "NAMES:    %s\n",
		strings.Join(append([]string{k.Singular, k.Plural}, k.ShortNames...), ", "))
	_, _ = fmt.Fprintf(e.w, "SCOPE:    %s\nVERBS:    %s\n", k.Scope, strings.Join(k.Verbs, ", "))
	if len(k.SubKinds) > 0 {
		_, _ = fmt.Fprintf(e.w, "SUBKINDS: %s\n", strings.Join(k.SubKinds, ", "))
	}
	e.text("DESCRIPTION", k.Description)
}

// parts returns the top-level fields of the kind's manifests, which the catalogue does not describe: metadata, spec,
// and status if the kind has one.
func parts(k client.Kind) []client.Field {
	out := []client.Field{
		{Path: "metadata", Type: "Metadata", Required: true, Description: "What every resource has."},
		{Path: "spec", Type: "Object", Required: true, Description: "What the resource should be."},
	}
	for _, f := range k.Fields {
		if strings.HasPrefix(f.Path, "status.") {
			return append(out, client.Field{
				Path:        "status",
				Type:        "Object",
				Description: "What was last observed of the resource.",
			})
		}
	}
	return out
}

// metadataFields returns the metadata fields of manifests.
func metadataFields(k client.Kind) []client.Field {
	const owned = " The gateway sets it."
	out := []client.Field{
		{
			Path:        "metadata.name",
			Type:        "String",
			Required:    true,
			Immutable:   true,
			Description: "Name, unique within kind and namespace: a DNS name of at most 253 characters.",
		},
	}
	if k.Scope != "GLOBAL" {
		out = append(out, client.Field{
			Path:        "metadata.namespace",
			Type:        "String",
			Immutable:   true,
			Description: "Namespace of the name, a DNS label of at most 63 characters. Absent: default.",
		})
	}
	out = append(out,
		client.Field{Path: "metadata.labels", Type: "MapEntry", Description: "Pairs to find resources by."},
		client.Field{
			Path:        "metadata.annotations",
			Type:        "MapEntry",
			Description: "Pairs that tools keep for themselves.",
		},
		client.Field{Path: "metadata.description", Type: "String", Description: "A note for people."},
		client.Field{
			Path:        "metadata.uid",
			Type:        "String",
			Description: "Tells a resource from an earlier one of the same name." + owned,
		},
		client.Field{
			Path:        "metadata.revision",
			Type:        "String",
			Description: "The last change. In a manifest that is applied: the change that it is based on.",
		},
		client.Field{
			Path:        "metadata.generation",
			Type:        "SafeInt",
			Description: "Counts the changes of the spec, from 1." + owned,
		},
		client.Field{Path: "metadata.createdAt", Type: "Time", Description: "When the resource was created." + owned},
		client.Field{
			Path:        "metadata.updatedAt",
			Type:        "Time",
			Description: "When the resource was last changed." + owned,
		},
		client.Field{
			Path:        "metadata.updatedBy",
			Type:        "String",
			Description: "Who made the last change of what callers set; absent: an anonymous caller." + owned,
		},
		client.Field{
			Path:        "metadata.deletionRequestedAt",
			Type:        "Time",
			Description: "When the deletion of the resource was requested; it has waited since then. Absent: it was not." + owned,
		},
		client.Field{
			Path:        "metadata.finalizers",
			Type:        "String",
			List:        true,
			Description: "What keeps the resource when its deletion is requested. A manifest does not set it.",
		},
	)
	if k.Expires {
		out = append(out, client.Field{
			Path:        "metadata.expiresAt",
			Type:        "Time",
			Description: "When the resource expires and is deleted; absent: never.",
		})
	}
	return out
}

// below returns the fields of the object at a path.
func (e explanation) below(path string) []client.Field {
	if path == "" {
		return parts(e.kind)
	}
	var out []client.Field
	for _, f := range slices.Concat(metadataFields(e.kind), e.kind.Fields) {
		if name, found := strings.CutPrefix(f.Path, path+"."); found && !strings.Contains(name, ".") {
			out = append(out, f)
		}
	}
	return out
}

func (e explanation) ofField(path string) error {
	all := slices.Concat(parts(e.kind), metadataFields(e.kind), e.kind.Fields)
	i := slices.IndexFunc(all, func(f client.Field) bool { return f.Path == path })
	if i < 0 {
		return e.unknown(path)
	}
	f := all[i]
	_, _ = fmt.Fprintf(e.w, "FIELD:    %s\n", path+" "+signature(f))
	e.text("DESCRIPTION", f.Description)
	e.text("DEPRECATED", f.DeprecationReason)
	e.text("LIMITS", strings.Join(limits(f), "\n"))
	if string(f.Default) != "null" {
		e.text("DEFAULT", string(f.Default))
	}
	if len(f.EnumValues) > 0 {
		_, _ = io.WriteString(e.w, "\nVALUES:\n")
		for _, v := range f.EnumValues {
			name := v.Stored
			if v.Name != v.Stored {
				name += " (in the API " + v.Name + ")"
			}
			_, _ = fmt.Fprintf(e.w, "  %s\n", Printable(name))
			writeLines(e.w, "    ", v.Description)
		}
	}
	if f.ManifestAt != "" {
		e.text("MANIFEST", "It is at the top of a manifest, as "+f.ManifestAt+".")
	}
	for _, r := range e.kind.References {
		if r.Path == path {
			text := "The name of a resource of kind " + r.Kind + "."
			if r.Guarded {
				text += " It must stay while this resource relies on it."
			}
			e.text("REFERENCE", text)
		}
	}
	return nil
}

// unknown returns the error for an unknown field. The error names the fields of the last object on the path that
// exists.
func (e explanation) unknown(path string) error {
	at := path
	for at != "" {
		at = at[:max(strings.LastIndexByte(at, '.'), 0)]
		names := []string{}
		for _, f := range e.below(at) {
			names = append(names, lastName(f))
		}
		if len(names) > 0 {
			where := e.kind.Name
			if at != "" {
				where += "." + at
			}
			return fmt.Errorf("%s has no field at %q; %s has %s", e.kind.Name, path, where, strings.Join(names, ", "))
		}
	}
	return fmt.Errorf("%s has no field at %q", e.kind.Name, path)
}

// fields writes the fields of the object at a path. If recursive is not set, it adds their descriptions; otherwise it
// also writes the fields of the objects in it.
func (e explanation) fields(path, indent string, recursive bool) {
	for _, f := range e.below(path) {
		_, _ = fmt.Fprintf(e.w, "%s%s\n", indent, Printable(lastName(f)+" "+signature(f)))
		if recursive {
			e.fields(f.Path, indent+"  ", true)
		} else {
			writeLines(e.w, indent+"  ", f.Description)
		}
	}
}

func lastName(f client.Field) string { return f.Path[strings.LastIndexByte(f.Path, '.')+1:] }

func (e explanation) text(title, text string) {
	if text != "" {
		_, _ = fmt.Fprintf(e.w, "\n%s:\n", title)
		writeLines(e.w, "  ", text)
	}
}

// signature returns the type of a field, followed by marks such as required.
func signature(f client.Field) string {
	of := f.Type
	if of == "MapEntry" {
		of = "map of String"
	} else if f.List {
		of = "[" + of + "]"
	}
	out := "<" + of + ">"
	for _, mark := range []struct {
		is   bool
		text string
	}{
		{f.Required, "required"},
		{f.Immutable, "immutable"},
		{f.WriteOnly, "write-only"},
		{f.DeprecationReason != "", "deprecated"},
	} {
		if mark.is {
			out += " " + mark.text
		}
	}
	return out
}

// limits returns a line for each limit of a field.
func limits(f client.Field) []string {
	l := f.Limits
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	between := func(what string, least, most *int) {
		switch {
		case least != nil && most != nil:
			add("%d to %d %s", *least, *most, what)
		case most != nil:
			add("at most %d %s", *most, what)
		case least != nil:
			add("at least %d %s", *least, what)
		}
	}
	between("elements", l.MinItems, l.MaxItems)
	if l.Unique {
		add("no two elements are equal")
	}
	if len(f.Keys) > 0 {
		add("elements are told apart by %s", strings.Join(f.Keys, ", "))
	}
	between("characters", l.MinLength, l.MaxLength)
	between("characters in a key", l.KeyMinLength, l.KeyMaxLength)
	between("fields", l.MinProperties, l.MaxProperties)
	if l.Min != nil {
		add("at least %s", strconv.FormatFloat(*l.Min, 'f', -1, 64))
	}
	if l.Max != nil {
		add("at most %s", strconv.FormatFloat(*l.Max, 'f', -1, 64))
	}
	if l.Format != "" {
		add("format %s", l.Format)
	}
	if l.Pattern != "" {
		add("matches %s", l.Pattern)
	}
	if l.KeyPattern != "" {
		add("keys match %s", l.KeyPattern)
	}
	if len(l.In) > 0 {
		add("one of %s", strings.Join(l.In, ", "))
	}
	return out
}
