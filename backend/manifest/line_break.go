package manifest

import (
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// oldBreaks are characters that the parser treats as line breaks, as in YAML 1.1. They are not line breaks in YAML 1.2
// (section 5.4).
const oldBreaks = "\u0085\u2028\u2029"

// hidden replaces the characters in oldBreaks by characters that do not occur in the text, and the other way round.
type hidden struct {
	hide, show *strings.Replacer
	any        bool
}

func lineBreaks(text string) hidden {
	if !strings.ContainsAny(text, oldBreaks) {
		return hidden{hide: strings.NewReplacer(), show: strings.NewReplacer()}
	}
	used := map[rune]bool{}
	for _, r := range text {
		if unicode.Is(unicode.Co, r) {
			used[r] = true
		}
	}
	var hide, show []string
	stand := rune(0xE000) // the first code point for private use
	for _, r := range oldBreaks {
		for used[stand] {
			stand++
		}
		hide = append(hide, string(r), string(stand))
		show = append(show, string(stand), string(r))
		stand++
	}
	return hidden{strings.NewReplacer(hide...), strings.NewReplacer(show...), true}
}

// restoreIn restores the characters in the strings of a node.
func (h hidden) restoreIn(n *yaml.Node) {
	if !h.any {
		return
	}
	n.Value = h.show.Replace(n.Value)
	for _, c := range n.Content {
		h.restoreIn(c)
	}
}
