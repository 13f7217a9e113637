package catalogue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"
)

// ReleasedVersion is a released version of the API of a catalogue, as a store records it.
type ReleasedVersion struct {
	// Name is the name of the version, such as v1.0.
	Name string
	// Hash is the hash of the version's files.
	Hash string
	// Withdrawn reports whether the version is no longer served.
	Withdrawn bool
}

// recordedVersion is the record of one released version.
type recordedVersion struct {
	Hash      string `json:"hash"`
	Withdrawn bool   `json:"withdrawn,omitempty"`
}

// Recorded reports whether a store has accepted a catalogue with these files. files is the hash of the files, including
// the released versions.
func (g Gate) Recorded(ctx context.Context, files string) (bool, error) {
	list, _, err := g.list(ctx)
	return slices.Contains(list.Files, files), err
}

// lostVersion is a released version whose clients a catalogue breaks.
type lostVersion struct {
	// reason says why the catalogue is refused, and what to do instead.
	reason string
	// effect says what becomes of the version if the catalogue is accepted nevertheless.
	effect string
}

// GivenUp returns a line for each released version that would be given up if the store accepted the candidate with
// AllowBreaking: it is no longer served, or served as changed.
func (g Gate) GivenUp(ctx context.Context, c Candidate) (lines []string, err error) {
	list, _, err := g.list(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range lostVersions(list, c, OutlineOf(c.Kinds).Hash()) {
		lines = append(lines, v.effect)
	}
	return lines, nil
}

// logLost logs the versions that were given up.
func (g Gate) logLost(lost []lostVersion) {
	for _, v := range lost {
		g.Logger.Warn("a released version is given up, as --allow-breaking says", zap.String("version", v.effect))
	}
}

// lostVersions returns the released versions that a catalogue has removed, changed, or added to an older major.
// When a gateway starts with a catalogue that was accepted before, it returns none, so that an older gateway can start
// during a roll-out.
func lostVersions(list accepted, c Candidate, hash string) (lost []lostVersion) {
	if list.startsWithKnown(c, hash) {
		return nil
	}
	newest := 0
	for _, v := range c.Versions {
		newest = max(newest, majorOf(v.Name))
	}
	for _, name := range slices.Sorted(maps.Keys(list.Versions)) {
		was := list.Versions[name]
		at := slices.IndexFunc(c.Versions, func(v ReleasedVersion) bool { return v.Name == name })
		switch {
		case at < 0 && was.Withdrawn, majorOf(name)+ServedMajors <= newest:
		case at >= 0 && (c.Versions[at].Withdrawn || c.Versions[at].Hash == was.Hash):
		case at < 0:
			lost = append(lost, lostVersion{
				reason: fmt.Sprintf("version %s of the API was released and is gone: put its folder back, "+
					"or withdraw it first", name),
				effect: fmt.Sprintf("%s is not served any more, and its clients get 404", name),
			})
		default:
			lost = append(lost, lostVersion{
				reason: fmt.Sprintf("version %s of the API was released and has other files now: "+
					"put its folder back as it was", name),
				effect: fmt.Sprintf("%s is served as it was changed, and its clients may fail", name),
			})
		}
	}
	return append(lost, lateVersions(list, c)...)
}

// lateVersions returns the new versions of an older major. After a newer major was released, an older one gets
// no more versions.
func lateVersions(list accepted, c Candidate) (lost []lostVersion) {
	last := ""
	for name := range list.Versions {
		if last == "" || majorOf(name) > majorOf(last) {
			last = name
		}
	}
	for _, v := range c.Versions {
		if _, known := list.Versions[v.Name]; !known && !v.Withdrawn && majorOf(v.Name) < majorOf(last) {
			lost = append(lost, lostVersion{
				reason: fmt.Sprintf("version %s of the API is new, and v%d was released before: "+
					"an older major gets no new minor versions; remove its folder", v.Name, majorOf(last)),
				effect: fmt.Sprintf("%s is served as a new version of the older major", v.Name),
			})
		}
	}
	return lost
}

// ServedMajors is the number of majors that are served: the newest one and its predecessor. Versions of older majors
// may be removed.
const ServedMajors = 2

// majorOf returns the major of a version, such as 1 for v1.10.
func majorOf(name string) int {
	major, _, _ := strings.Cut(strings.TrimPrefix(name, "v"), ".")
	n, _ := strconv.Atoi(major) // 0 if it is no number
	return n
}

// startsWithKnown reports whether a gateway starts with a candidate that was accepted before. hash is the hash of the
// candidate's outline.
func (a accepted) startsWithKnown(c Candidate, hash string) bool {
	known := slices.Contains(a.Files, c.Files) || len(c.Versions) == 0 && slices.Contains(a.Unreleased, hash)
	return c.Start && known
}

// withVersions returns the list with the released versions of a candidate, and reports whether that changes the list.
// hash is the hash of the candidate's outline.
//
// Versions that the candidate lacks stay in the list, unless AllowBreaking is set. A return to an earlier catalogue
// does not change versions that were recorded since. A withdrawn version stays in the list, so that its number cannot
// be used again.
func (a accepted) withVersions(c Candidate, hash string) (next accepted, changed bool) {
	if len(a.Versions) == 0 && len(c.Versions) == 0 {
		return a, false
	}
	next = a
	next.Versions = maps.Clone(a.Versions)
	if c.AllowBreaking || next.Versions == nil {
		next.Versions = map[string]recordedVersion{}
	}
	back := a.startsWithKnown(c, hash)
	for _, v := range c.Versions {
		was, recorded := next.Versions[v.Name]
		switch {
		case recorded && back:
		case recorded && v.Withdrawn:
			next.Versions[v.Name] = recordedVersion{Hash: was.Hash, Withdrawn: true}
		default:
			next.Versions[v.Name] = recordedVersion{Hash: v.Hash, Withdrawn: v.Withdrawn}
		}
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
