package index

import "strings"

// CompareItems is how items are ordered, of two values with the places behind them.
func CompareItems(value, place, other, otherPlace string) int {
	return compare(value, place, other, otherPlace)
}

// Content lists what a tree of a kind has, for comparison.
func (k *Kind) Content(index string) []string {
	var out []string
	k.Scan(Run{Index: index}, false, func(value string, e *Entry) bool {
		out = append(out, strings.Join([]string{value, e.Resource.Namespace, e.Resource.Name, e.Resource.Revision.String(), string(e.Resource.Body)}, "|"))
		return true
	})
	return out
}
