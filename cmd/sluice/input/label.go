package input

import (
	"fmt"
	"strings"

	"github.com/sluicegw/sluice/graph/client"
)

// LabelForms describes the accepted tests of labels.
const LabelForms = "key=value, key!=value, key in (a,b), key notin (a,b), key and !key are accepted, joined by commas"

// ParseLabels parses label selectors in the syntax of kubectl. All must hold. A selector that cannot be parsed is an
// error, because without it other resources would be selected.
func ParseLabels(texts []string) ([]client.LabelTest, error) {
	var out []client.LabelTest
	for _, text := range texts {
		for _, part := range splitCommas(text) {
			t, ok := parseLabelTest(strings.TrimSpace(part))
			if !ok {
				return nil, fmt.Errorf("selector: %q is not understood; %s", text, LabelForms)
			}
			out = append(out, t)
		}
	}
	return out, nil
}

func parseLabelTest(text string) (client.LabelTest, bool) {
	if key, found := strings.CutPrefix(text, "!"); found {
		key = strings.TrimSpace(key)
		return client.LabelTest{Key: key, Operator: client.LabelAbsent}, isLabelKey(key)
	}
	for _, c := range []struct {
		sign     string
		operator client.LabelOperator
	}{{"!=", client.LabelNotIn}, {"==", client.LabelIn}, {"=", client.LabelIn}} {
		if key, value, found := strings.Cut(text, c.sign); found {
			key, value = strings.TrimSpace(key), strings.TrimSpace(value)
			return client.LabelTest{
				Key:      key,
				Operator: c.operator,
				Values:   []string{value},
			}, isLabelKey(key) && isLabelValue(value)
		}
	}
	key, rest, found := strings.Cut(text, " ")
	if !found {
		return client.LabelTest{Key: key, Operator: client.LabelExists}, isLabelKey(key)
	}
	word, list, found := strings.Cut(strings.TrimSpace(rest), "(")
	list, closed := strings.CutSuffix(strings.TrimSpace(list), ")")
	operators := map[string]client.LabelOperator{"in": client.LabelIn, "notin": client.LabelNotIn}
	t := client.LabelTest{Key: key, Operator: operators[strings.TrimSpace(word)]}
	if !found || !closed || t.Operator == "" || !isLabelKey(key) || strings.TrimSpace(list) == "" {
		return t, false
	}
	for value := range strings.SplitSeq(list, ",") {
		value = strings.TrimSpace(value)
		if !isLabelValue(value) {
			return t, false
		}
		t.Values = append(t.Values, value)
	}
	return t, true
}

// isLabelKey reports whether a text can be the key of a label: a name, or a domain, a slash and a name. Only the
// gateway checks the complete rule.
func isLabelKey(key string) bool {
	return key != "" && strings.Count(key, "/") <= 1 &&
		!strings.ContainsFunc(key, func(r rune) bool { return !isLabelRune(r) && r != '/' })
}

// isLabelValue reports whether a text can be the value of a label, which may be empty.
func isLabelValue(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return !isLabelRune(r) })
}

func isLabelRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.'
}
