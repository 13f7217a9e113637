package release

import (
	"errors"
	"io"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// State is the state of a version. The zero value means that the version is served without an end.
type State struct {
	// Deprecated is the day from which new clients should not use the version; zero if there is none. It may be in the
	// future.
	Deprecated time.Time
	// Sunset is the day after which the version may be withdrawn; zero if there is none.
	Sunset time.Time
	// Withdrawn is the day from which the version is not served; zero if it is served.
	Withdrawn time.Time
	// Dropped reports whether the version is not served because a version two majors newer was released.
	Dropped bool
	// Why is a text for clients: the reason, and what to use instead. It is always set for withdrawn and dropped
	// versions.
	Why string
	// Candidate reports whether the version is not released yet. A candidate is served for trials and may change until
	// its release.
	Candidate bool
}

// Served reports whether the version is served.
func (s State) Served() bool { return s.Withdrawn.IsZero() && !s.Dropped }

// candidateKey is the key in StatesFile that marks a candidate.
const candidateKey = "candidate"

// stateKeys are the keys of a version in StatesFile, for findings.
const stateKeys = "deprecated, sunset, withdrawn, why, candidate"

// states parses StatesFile, which maps versions to their states.
func (r *reader) states(text string) map[Number]State {
	out := map[Number]State{}
	root := r.document(text)
	if root == nil || root.Tag == "!!null" {
		return out
	}
	if root.Kind != yaml.MappingNode {
		r.report(StatesFile, root.Line,
			"a mapping of versions to their states is wanted, such as v1.0: {deprecated: 2030-01-31}")
		return out
	}
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		number, err := ParseNumber(key.Value)
		if err != nil {
			r.report(StatesFile, key.Line, "%v", err)
			continue
		}
		if _, twice := out[number]; twice {
			r.report(StatesFile, key.Line, "%s is there twice", number)
			continue
		}
		out[number] = r.state(number, value)
		r.lines[number] = key.Line
	}
	return out
}

// document returns the root of the YAML document in a text; nil if there is none. A text with several documents is a
// finding.
func (r *reader) document(text string) *yaml.Node {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var doc, more yaml.Node
	err := decoder.Decode(&doc)
	if err == nil {
		err = decoder.Decode(&more)
	}
	switch {
	case err == nil:
		r.report(StatesFile, more.Line, "there is a second YAML document; one with all versions is wanted")
	case !errors.Is(err, io.EOF):
		r.report(StatesFile, 1, "it is no YAML: %s", strings.Join(strings.Fields(err.Error()), " "))
	case len(doc.Content) > 0:
		return doc.Content[0]
	}
	return nil
}

// state parses the state of one version.
func (r *reader) state(number Number, node *yaml.Node) (out State) {
	if node.Kind != yaml.MappingNode {
		r.report(StatesFile, node.Line, "%s: a mapping with the keys %s is wanted", number, stateKeys)
		return out
	}
	lines := map[string]int{}
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if lines[key.Value] > 0 {
			r.report(StatesFile, key.Line, "%s: %s is there twice", number, key.Value)
		}
		lines[key.Value] = key.Line
		switch key.Value {
		case "deprecated":
			out.Deprecated = r.day(number, key, value)
		case "sunset":
			out.Sunset = r.day(number, key, value)
		case "withdrawn":
			out.Withdrawn = r.day(number, key, value)
		case "why":
			out.Why = r.why(number, value)
		case candidateKey:
			out.Candidate = value.Value == "true"
			if !out.Candidate {
				r.report(StatesFile, value.Line, "%s: %s is true, or is left out", number, candidateKey)
			}
		default:
			r.report(StatesFile, key.Line, "%s: %q is no key; accepted are %s", number, key.Value, stateKeys)
		}
	}
	r.ordered(number, out, lines)
	if out.Candidate && len(lines) > 1 {
		r.report(StatesFile, lines[candidateKey], "%s: a candidate was not released, so it has no other key", number)
	}
	if !out.Withdrawn.IsZero() && out.Why == "" && lines["why"] == 0 {
		r.report(StatesFile, lines["withdrawn"], "%s: why is missing: it tells clients what to use instead", number)
	}
	return out
}

// ordered adds findings about dates of a version that are in a wrong order.
func (r *reader) ordered(number Number, s State, lines map[string]int) {
	if !s.Sunset.IsZero() && s.Deprecated.IsZero() {
		r.report(StatesFile, lines["sunset"],
			"%s: a version with a sunset is deprecated before; deprecated is missing", number)
	}
	if !s.Sunset.IsZero() && s.Sunset.Before(s.Deprecated) {
		r.report(StatesFile, lines["sunset"], "%s: sunset is before deprecated", number)
	}
	if !s.Withdrawn.IsZero() && s.Withdrawn.Before(s.Deprecated) {
		r.report(StatesFile, lines["withdrawn"], "%s: withdrawn is before deprecated", number)
	}
	if !s.Withdrawn.IsZero() && s.Withdrawn.Before(s.Sunset) {
		r.report(StatesFile, lines["withdrawn"],
			"%s: withdrawn is before sunset, the day until which clients were told that they can use it; "+
				"with an earlier sunset it can be withdrawn earlier", number)
	}
}

// maxWhy is the maximum length of State.Why in bytes. It is limited because errors contain it.
const maxWhy = 300

func (r *reader) why(number Number, node *yaml.Node) string {
	text := strings.TrimSpace(node.Value)
	notGraphic := func(c rune) bool { return !unicode.IsGraphic(c) }
	if node.Kind != yaml.ScalarNode || node.Tag == "!!null" || text == "" || len(text) > maxWhy ||
		strings.ContainsFunc(text, notGraphic) {
		r.report(StatesFile, node.Line, "%s: why is a line of 1 to %d bytes without control characters", number, maxWhy)
		return ""
	}
	return text
}

// minYear is the first accepted year of a date. The zero time, which means no date, is earlier.
const minYear = 2000

// day parses a date and returns the beginning of the day in UTC.
func (r *reader) day(number Number, key, node *yaml.Node) time.Time {
	at, err := time.Parse(time.DateOnly, node.Value)
	if node.Kind != yaml.ScalarNode || err != nil || at.Year() < minYear {
		r.report(StatesFile, node.Line, "%s: %s is a date from the year %d on, such as 2030-01-31",
			number, key.Value, minYear)
		return time.Time{}
	}
	return at
}
