// Package spelling finds the name that a user may have meant.
package spelling

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// maxName is the maximum size of a name, in bytes, for which Nearest finds another one. It limits the work.
const maxName = 64

// Nearest returns the name that is spelled most like a wrong one, in any case; "" if none is close. A short name may
// differ by one letter, a longer one by up to three.
func Nearest(wrong string, names []string) string {
	if len(wrong) > maxName {
		return ""
	}
	best, distance := "", min(3, 1+len(wrong)/4)+1
	wrong = strings.ToLower(wrong)
	for _, name := range names {
		if max(len(name)-len(wrong), len(wrong)-len(name)) >= distance {
			continue
		}
		if d := levenshtein.ComputeDistance(wrong, strings.ToLower(name)); d < distance && d < len(name) {
			best, distance = name, d
		}
	}
	return best
}
