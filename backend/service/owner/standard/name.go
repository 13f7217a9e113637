package standard

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sluicegw/sluice/backend"
)

// The variables of a pattern.
const (
	nameVariable      = "{name}"
	namespaceVariable = "{namespace}"
	// everywhere is the value that services accept instead of a namespace to list the resources of all namespaces.
	everywhere = "-"
)

// checkPattern returns an error if names cannot be split by the pattern without ambiguity.
func checkPattern(pattern string) error {
	const accepted = "a pattern such as projects/{namespace}/topics/{name} is accepted"
	segments := strings.Split(pattern, "/")
	seen := map[string]int{}
	for _, segment := range segments {
		switch {
		case segment == "":
			return fmt.Errorf("%q has an empty segment; %s", pattern, accepted)
		case segment == nameVariable, segment == namespaceVariable:
			seen[segment]++
		case strings.ContainsAny(segment, "{}"):
			return fmt.Errorf("%q has the segment %q; a text, {namespace} and {name} are accepted", pattern, segment)
		}
	}
	if segments[len(segments)-1] != nameVariable || seen[nameVariable] != 1 || seen[namespaceVariable] > 1 {
		return fmt.Errorf("%q: {name} is to be the last segment and stand there once, {namespace} at most once; %s",
			pattern, accepted)
	}
	return nil
}

// splitPattern splits a pattern before its last two segments, which are the collection and the name. parent is the
// pattern of the parent; "" if there are fewer than three segments.
func splitPattern(pattern string) (parent, rest string) {
	segments := strings.Split(pattern, "/")
	if len(segments) < 3 {
		return "", pattern
	}
	at := len(segments) - 2
	return strings.Join(segments[:at], "/"), strings.Join(segments[at:], "/")
}

// expand inserts a namespace and a name into a pattern, or into a part of one.
func expand(pattern, namespace, name string) string {
	return strings.NewReplacer(namespaceVariable, namespace, nameVariable, name).Replace(pattern)
}

// keyOf returns the key of a resource. If pattern is not empty, keyOf splits name by it and ignores namespace.
func keyOf(kind, pattern, namespace, name string) (backend.Key, error) {
	key := backend.Key{Kind: kind, Namespace: namespace, Name: name}
	if pattern != "" {
		key.Namespace = ""
		want := strings.Split(pattern, "/")
		is := strings.Split(name, "/")
		if len(want) != len(is) {
			return backend.Key{}, fmt.Errorf("the name %q does not have the pattern %s", shortText(name), pattern)
		}
		for i, segment := range want {
			switch {
			case segment == nameVariable:
				key.Name = is[i]
			case segment == namespaceVariable:
				key.Namespace = is[i]
			case segment != is[i]:
				return backend.Key{}, fmt.Errorf("the name %q does not have the pattern %s", shortText(name), pattern)
			}
		}
	}
	switch n := len(key.Kind) + len(key.Namespace) + len(key.Name); {
	case key.Name == "":
		return backend.Key{}, errors.New("the resource has no name")
	case n > backend.MaxKeyBytes:
		return backend.Key{}, fmt.Errorf("the key has %d bytes; at most %d are accepted", n, backend.MaxKeyBytes)
	}
	return key, nil
}

// shortText returns a text on one line for an error. Long texts are cut.
func shortText(text string) string {
	const most = 200
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
