package release_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/release"
)

func readStates(t *testing.T, text string) ([]*release.Version, error) {
	t.Helper()
	return release.Read(map[string]string{
		"v1.0/shop.graphqls": shop, "v1.0/api.graphql": kinds.PrintBare(newest(t, shop).API), "versions.yaml": text,
	}, "shop")
}

func TestState_IsReadFromItsFile(t *testing.T) {
	versions, err := readStates(t, "v1.0:\n  deprecated: 2030-01-31\n  sunset: 2030-07-31\n  why: use v1.1\n")
	if err != nil {
		t.Fatal(err)
	}
	want := release.State{
		Deprecated: time.Date(2030, 1, 31, 0, 0, 0, 0, time.UTC), Sunset: time.Date(2030, 7, 31, 0, 0, 0, 0, time.UTC), Why: "use v1.1",
	}
	if versions[0].State != want {
		t.Errorf("%+v", versions[0].State)
	}
	for _, none := range []string{"", "# nothing yet\n", "v1.0: {}\n"} {
		if versions, err = readStates(t, none); err != nil || versions[0].State != (release.State{}) {
			t.Errorf("%q: %v %v", none, versions, err)
		}
	}
}

func TestState_FindingsAreAtTheirLines(t *testing.T) {
	for text, want := range map[string]string{
		"- v1.0\n":                         "1: a mapping of versions",
		"v1.0: gone\n":                     "1: v1.0: a mapping with the keys deprecated, sunset, withdrawn, why, candidate is wanted",
		"v1.0: {}\nv1.0: {}\n":             ":2: ",
		"v1.0:\n  deprecatd: 2030-01-31\n": `2: v1.0: "deprecatd" is no key; accepted are deprecated, sunset, withdrawn, why`,
		"v1.0:\n  deprecated: soon\n":      "2: v1.0: deprecated is a date from the year 2000 on, such as 2030-01-31",
		"v1.0:\n  sunset: 2030-01-31\n":    "2: v1.0: a version with a sunset is deprecated before",
		"v1.0:\n  deprecated: 2030-01-31\n  sunset: 2030-01-30\n":                                    "3: v1.0: sunset is before deprecated",
		"v1.0:\n  withdrawn: 2030-01-30\n  deprecated: 2030-01-31\n":                                 "2: v1.0: withdrawn is before deprecated",
		"v1.0:\n  withdrawn: 2030-01-30\n":                                                           "2: v1.0: why is missing",
		"v1.0:\n  why: |\n    two\n    lines\n":                                                      "2: v1.0: why is a line of 1 to 300 bytes",
		"v1.0:\n  withdrawn: 0001-01-01\n  why: x\n":                                                 "2: v1.0: withdrawn is a date from the year 2000 on",
		"v1.0:\n  why: null\n":                                                                       "2: v1.0: why is a line of 1 to 300 bytes",
		"v1.0:\n  why: \"\\e[31m\"\n":                                                                "2: v1.0: why is a line of 1 to 300 bytes without control characters",
		"v1.0:\n  why: \"\\u2028\"\n":                                                                "2: v1.0: why is a line of 1 to 300 bytes without control characters",
		"v1.0:\n  deprecated: 2030-01-31\n  sunset: 2030-07-31\n  withdrawn: 2030-02-01\n  why: x\n": "4: v1.0: withdrawn is before sunset",
		"v1.0: {}\n---\nv1.0: {withdrawn: 2030-01-31, why: x}\n":                                     "there is a second YAML document",
		"v1.0: {}\n---\n[\n":                                                                         "it is no YAML: ",
		"v1:\n  why: x\n":                                                                            `1: "v1" is no version`,
		"v1.0: [\n":                                                                                  "1: it is no YAML: ",
	} {
		_, err := readStates(t, text)
		if err == nil || !strings.Contains(err.Error(), "shop/versions/versions.yaml:") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestState_OfACandidateHasNothingElse(t *testing.T) {
	versions, err := readStates(t, "v1.0:\n  candidate: true\n")
	if err != nil || !versions[0].Candidate || !versions[0].Served() {
		t.Fatalf("%v %v", versions, err)
	}
	for text, want := range map[string]string{
		"v1.0: {candidate: false}":                        "versions.yaml:1: v1.0: candidate is true, or is left out",
		"v1.0: {candidate: true, deprecated: 2030-01-31}": "versions.yaml:1: v1.0: a candidate was not released, so it has no other key",
	} {
		if _, err := readStates(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
