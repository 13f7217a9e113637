package catalogue

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// ReleasedVersion is a released version of the API of a catalogue, as a store records it.
type ReleasedVersion struct {
	// Name of the version, such as v1.0.
	Name string
	// Hash of its files.
	Hash string
	// Withdrawn reports whether it is not served any more.
	Withdrawn bool
}

// recordedVersion is a version in the record.
type recordedVersion struct {
	Hash      string `json:"hash"`
	Withdrawn bool   `json:"withdrawn,omitempty"`
}

// Recorded reports whether a store has accepted a catalogue of these files, with its released versions.
func (g Gate) Recorded(ctx context.Context, files string) (bool, error) {
	list, _, err := g.list(ctx)
	return slices.Contains(list.Files, files), err
}

// lostVersions returns lines about released versions that a catalogue does not have any more, or has changed. There are
// none for a gateway that starts with a catalogue that was accepted before, so that an older gateway can start in the
// middle of a roll-out.
func lostVersions(list accepted, c Candidate, hash string) (lines []string) {
	known := slices.Contains(list.Files, c.Files) || len(c.Versions) == 0 && slices.Contains(list.Unreleased, hash)
	if c.Start && known {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(list.Versions)) {
		was := list.Versions[name]
		at := slices.IndexFunc(c.Versions, func(v ReleasedVersion) bool { return v.Name == name })
		switch {
		case was.Withdrawn, at >= 0 && (c.Versions[at].Withdrawn || c.Versions[at].Hash == was.Hash):
		case at < 0:
			lines = append(lines, fmt.Sprintf("version %s of the API was released and is gone: put its folder back, "+
				"or withdraw it first", name))
		default:
			lines = append(lines, fmt.Sprintf("version %s of the API was released and has other files now: "+
				"put its folder back as it was", name))
		}
	}
	return lines
}

// withVersions returns the list with the versions of a catalogue, and whether that changes it. Versions that the
// catalogue has lost stay in the list unless AllowBreaking gives them up.
func (a accepted) withVersions(c Candidate) (next accepted, changed bool) {
	if len(a.Versions) == 0 && len(c.Versions) == 0 {
		return a, false
	}
	next = a
	next.Versions = maps.Clone(a.Versions)
	if c.AllowBreaking || next.Versions == nil {
		next.Versions = map[string]recordedVersion{}
	}
	for _, v := range c.Versions {
		next.Versions[v.Name] = recordedVersion{Hash: v.Hash, Withdrawn: v.Withdrawn}
	}
	if len(a.Versions) == 0 {
		next.Unreleased = slices.Clone(a.Hashes)
	}
	if n := len(a.Files); n == 0 || a.Files[n-1] != c.Files {
		next.Files = slices.DeleteFunc(slices.Clone(a.Files), func(hash string) bool { return hash == c.Files })
		next.Files = append(next.Files, c.Files)
		next.Files = next.Files[max(0, len(next.Files)-maxAccepted):]
		changed = true
	}
	return next, changed || !maps.Equal(a.Versions, next.Versions)
}
