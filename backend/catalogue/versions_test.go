package catalogue_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/memory"
)

func TestAccept_KeepsReleasedVersions(t *testing.T) {
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	gate := catalogue.Gate{Store: store}
	one := catalogue.ReleasedVersion{Name: "v1.0", Hash: "aa"}
	two := catalogue.ReleasedVersion{Name: "v1.1", Hash: "bb"}
	edited := catalogue.ReleasedVersion{Name: "v1.0", Hash: "cc"}
	withdrawn := catalogue.ReleasedVersion{Name: "v1.0", Hash: "cc", Withdrawn: true}
	of := func(files string, versions ...catalogue.ReleasedVersion) catalogue.Candidate {
		return catalogue.Candidate{Kinds: shelf(nil), Files: files, Versions: versions}
	}
	start := func(c catalogue.Candidate) catalogue.Candidate {
		c.Start = true
		return c
	}
	allowed := func(c catalogue.Candidate) catalogue.Candidate {
		c.AllowBreaking = true
		return c
	}
	gone, other := "version v1.0 of the API was released and is gone", "version v1.0 of the API was released and has other files now"
	for _, step := range []struct {
		name string
		c    catalogue.Candidate
		want string
	}{
		{"no versions", of("f0"), ""},
		{"one is released", of("f1", one), ""},
		{"the same again", of("f1", one), ""},
		{"the folder is gone", of("f0"), gone},
		{"a gateway starts as before the release", start(of("f0")), ""},
		{"one is edited", of("f2", edited), other},
		{"a gateway starts with an edited one", start(of("f2", edited)), other},
		{"another is released", of("f3", one, two), ""},
		{"a gateway starts as before that", start(of("f1", one)), ""},
		{"a reload as before that", of("f1", one), "version v1.1 of the API was released and is gone"},
		{"both again", of("f3", one, two), ""},
		{"one is withdrawn", of("f4", withdrawn, two), ""},
		{"it is served again with other files", of("f5", edited, two), other},
		{"it is served again", of("f3", one, two), ""},
		{"it is withdrawn again", of("f4", withdrawn, two), ""},
		{"its folder is gone", of("f5", two), ""},
		{"a gateway starts as before that", start(of("f3", one, two)), ""},
		{"a reload without its folder", of("f7", two), ""},
		{"something else has its number", of("f8", edited, two), other},
		{"all are given up", allowed(of("f0")), ""},
		{"one of that name", of("f6", edited), ""},
	} {
		err := gate.Accept(t.Context(), step.c)
		if refused, ok := errors.AsType[*catalogue.RefusedError](err); step.want == "" && err != nil || step.want != "" && (!ok || !refused.Versions || !strings.Contains(err.Error(), step.want)) {
			t.Errorf("%s: %v", step.name, err)
		}
	}
	for files, want := range map[string]bool{"f1": true, "f2": false, "f3": true, "f6": true} {
		if got, err := gate.Recorded(t.Context(), files); got != want || err != nil {
			t.Errorf("%s is recorded: %v %v", files, got, err)
		}
	}
	if hashes, err := catalogue.Accepted(t.Context(), store); err != nil || len(slices.Compact(hashes)) != 1 {
		t.Errorf("catalogues %v %v", hashes, err)
	}
}

// TestAccept_SaysWhatBecomesOfVersionsThatAreGivenUp: the refusal says it, and the log once it is accepted.
func TestAccept_SaysWhatBecomesOfVersionsThatAreGivenUp(t *testing.T) {
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	core, logged := observer.New(zap.WarnLevel)
	gate := catalogue.Gate{Store: store, Logger: zap.New(core)}
	before := catalogue.Candidate{Kinds: shelf(nil), Files: "f1", Versions: []catalogue.ReleasedVersion{
		{Name: "v1.0", Hash: "aa"}, {Name: "v1.1", Hash: "bb"},
	}}
	if err := gate.Accept(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	const removed = "v1.0 is not served any more, and its clients get 404"
	const changed = "v1.1 is served as it was changed, and its clients may fail"
	next := catalogue.Candidate{Kinds: shelf(nil), Files: "f2", Versions: []catalogue.ReleasedVersion{{Name: "v1.1", Hash: "cc"}}}
	err = gate.Accept(t.Context(), next)
	if err == nil || !strings.HasSuffix(err.Error(), "use --allow-breaking to accept that, with this result: "+removed+"; "+changed) {
		t.Errorf("%v", err)
	}
	given, err := gate.GivenUp(t.Context(), next)
	if err != nil || !slices.Equal(given, []string{removed, changed}) {
		t.Errorf("%q %v", given, err)
	}
	next.AllowBreaking = true
	next.DryRun = true
	if err := gate.Accept(t.Context(), next); err != nil || logged.Len() > 0 {
		t.Errorf("a dry run: %v, and the log has %v", err, logged.All())
	}
	next.DryRun = false
	if err := gate.Accept(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range logged.FilterMessageSnippet("a released version is given up").All() {
		lines = append(lines, e.ContextMap()["version"].(string))
	}
	if !slices.Equal(lines, given) {
		t.Errorf("the log has %q", lines)
	}
}

func TestAccept_DropsMajorsAndTakesNoLateMinors(t *testing.T) {
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	gate := catalogue.Gate{Store: store}
	of := func(files string, names ...string) catalogue.Candidate {
		c := catalogue.Candidate{Kinds: shelf(nil), Files: files}
		for _, name := range names {
			c.Versions = append(c.Versions, catalogue.ReleasedVersion{Name: name, Hash: name})
		}
		return c
	}
	for _, step := range []struct {
		name string
		c    catalogue.Candidate
		want string
	}{
		{"a major", of("f1", "v1.0", "v1.9"), ""},
		{"another one", of("f2", "v1.0", "v1.9", "v2.0"), ""},
		{"a minor version of the first", of("f3", "v1.0", "v1.9", "v1.10", "v2.0"), "version v1.10 of the API is new, and v2 was released before: an older major gets no new minor versions; remove its folder"},
		{"one of the second", of("f4", "v1.0", "v1.9", "v2.0", "v2.1"), ""},
		{"the first is gone too early", of("f5", "v2.0", "v2.1"), "version v1.0 of the API was released and is gone"},
		{"a third one drops the first", of("f6", "v2.0", "v2.1", "v3.0"), ""},
		{"the second is gone", of("f7", "v3.0"), "version v2.0 of the API was released and is gone"},
		{"an older gateway begins", func() catalogue.Candidate { c := of("f2", "v1.0", "v1.9", "v2.0"); c.Start = true; return c }(), ""},
	} {
		err := gate.Accept(t.Context(), step.c)
		if step.want == "" && err != nil || step.want != "" && (err == nil || !strings.Contains(err.Error(), step.want)) {
			t.Errorf("%s: %v", step.name, err)
		}
	}
}
