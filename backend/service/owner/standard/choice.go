package standard

import (
	"errors"
	"fmt"
	"slices"
)

// choice lists the kinds for which an SDL is generated: their sorted names, and the mapping of each name.
type choice struct {
	names    []string
	mappings map[string]*KindMapping
	// refused lists the messages that cannot become kinds because another message already has the kind's name.
	refused []Omitted
}

// choose returns the kinds that names lists. If names is empty, it returns the kinds of the mapping and all candidates.
// A name is the name of a kind or the full name of a message.
func (d *Descriptors) choose(names []string, given *Mapping) (choice, error) {
	out := choice{mappings: map[string]*KindMapping{}}
	add := func(name string, k *KindMapping) {
		if k == nil {
			k = &KindMapping{}
		}
		if out.mappings[name] == nil {
			out.names = append(out.names, name)
			out.mappings[name] = k
		}
	}
	candidates := d.Candidates()
	if len(names) == 0 {
		mapped := map[string]bool{}
		for name, k := range given.Kinds {
			add(name, k)
			mapped[out.mappings[name].Message] = true
		}
		for _, one := range candidates {
			add(one.Kind, &KindMapping{Message: one.Message, Service: one.Service})
			taken := out.mappings[one.Kind].Message
			if taken != "" && taken != one.Message && !mapped[one.Message] {
				out.refused = append(out.refused, Omitted{Path: one.Message, Why: sameName(one.Kind, taken)})
			}
		}
	}
	var known []string
	for _, one := range candidates {
		known = append(known, one.Kind)
	}
	for _, name := range names {
		i := slices.IndexFunc(candidates, func(one Candidate) bool { return one.Kind == name || one.Message == name })
		switch {
		case given.Kinds[name] != nil:
			add(name, given.Kinds[name])
		case i < 0:
			return out, fmt.Errorf("no method Get or List of the API answers a %s; there are %s", shortText(name), listed(known))
		case candidates[i].Kind == name:
			add(name, &KindMapping{})
		default:
			one := candidates[i]
			add(one.Kind, &KindMapping{Message: one.Message, Service: one.Service})
			if taken := out.mappings[one.Kind].Message; taken != one.Message {
				return out, fmt.Errorf("%s: %s", one.Message, sameName(one.Kind, taken))
			}
		}
	}
	slices.Sort(out.names)
	if len(out.names) == 0 {
		return out, errors.New("the API has no kinds: no method Get or List of its services answers a message")
	}
	return out, nil
}

// sameName returns the reason why a message cannot become the kind named kind. taken is the message that already is
// this kind, or "" if it is not known.
func sameName(kind, taken string) string {
	if taken == "" {
		return fmt.Sprintf("another message is the kind %s already; --kind takes the full names of messages, too", kind)
	}
	return fmt.Sprintf("the message %s is the kind %s already; in the mapping, a kind of another name can have the message",
		taken, kind)
}
