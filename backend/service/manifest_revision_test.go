package service_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// based is the manifest of a widget that is based on a revision.
func based(revision string) string {
	return strings.Replace(widgetManifest, "metadata:", "metadata:\n  revision: "+revision, 1)
}

func TestManifest_WhatTheServerOwnsInAManifestIsPassedOverInSilence(t *testing.T) {
	f := setup(t)
	if _, err := f.apply(widgetManifest); err != nil {
		t.Fatal(err)
	}
	owned := strings.Replace(widgetManifest, "metadata:", "status: {nonsense: x}\nmetadata:\n  uid: u\n  generation: 7\n  createdAt: 2020-01-01T00:00:00Z\n"+
		"  updatedAt: yesterday\n  deletionRequestedAt: null\n  finalizers: [a.org/b]\n  resourceVersion: '1'\n  managedFields: []", 1)
	out, err := f.apply(owned)
	if err != nil || out.Outcome != service.Unchanged || len(out.Warnings) != 0 {
		t.Fatalf("%+v %v", out, err)
	}
	_, err = f.apply(strings.Replace(widgetManifest, "metadata:", "metadata:\n  createdOn: x", 1))
	if e := servicetest.WantCode(t, err, failure.CodeBadUserInput); e.Path != "metadata.createdOn" {
		t.Errorf("path %q: %v", e.Path, e)
	}
}

func TestManifest_OnlyTheRevisionOfAManifestIsIgnored(t *testing.T) {
	f := setup(t)
	apply := func(manifest string) (*service.Written, error) {
		return f.Writer.Apply(context.Background(), service.ApplyRequest{Manifest: manifest, IgnoreRevision: true})
	}
	if out, err := apply(based("1-1")); err != nil || out.Outcome != service.Created {
		t.Fatalf("of an absent resource: %+v %v", out, err)
	}
	if out, err := apply(strings.Replace(based("1-1"), "title: A", "title: B", 1)); err != nil || out.Outcome != service.Updated {
		t.Fatalf("of an older revision: %+v %v", out, err)
	}
	for name, c := range map[string]struct {
		manifest string
		code     failure.Code
	}{
		"an unknown field":   {strings.Replace(based("1-1"), "title: A", "titel: A", 1), failure.CodeValidationFailed},
		"an unknown key":     {strings.Replace(based("1-1"), "metadata:", "metadata:\n  nmae: a", 1), failure.CodeBadUserInput},
		"no text":            {strings.Replace(based("1-1"), "revision: 1-1", "revision: [1]", 1), failure.CodeBadUserInput},
		"another apiVersion": {strings.Replace(based("1-1"), "example.org/v1", "example.org/v2", 1), failure.CodeBadUserInput},
	} {
		_, err := apply(c.manifest)
		t.Run(name, func(t *testing.T) { servicetest.WantCode(t, err, c.code) })
	}
	revision := "1-1"
	_, err := f.Writer.Apply(context.Background(), service.ApplyRequest{Manifest: based("1-1"), IgnoreRevision: true, ExpectedRevision: &revision})
	if e := servicetest.WantCode(t, err, failure.CodeBadUserInput); !strings.Contains(e.Message, "expectedRevision") || e.Path != "ignoreRevision" {
		t.Errorf("%q: %v", e.Path, e)
	}
}

func TestManifest_AnApplyWithARevisionOfWhatIsGoneSaysHowToCreateItAnew(t *testing.T) {
	f := setup(t)
	_, err := f.apply(based("1-1"))
	e := servicetest.WantCode(t, err, failure.CodeNotFound)
	for _, says := range []string{"ignoreRevision", "--ignore-revision", `"1-1"`} {
		if !strings.Contains(e.Message, says) {
			t.Errorf("%q does not say %s", e.Message, says)
		}
	}
	if e.Path != "metadata.revision" || e.ExpectedRevision != "1-1" {
		t.Errorf("%+v", e)
	}
	revision := "1-1"
	_, err = f.Writer.Apply(context.Background(), service.ApplyRequest{Manifest: widgetManifest, ExpectedRevision: &revision})
	if e := servicetest.WantCode(t, err, failure.CodeNotFound); strings.Contains(e.Message, "ignoreRevision") {
		t.Errorf("ignoreRevision does not help here: %v", e)
	}
}

func TestManifest_TheConflictOfAnApplyShowsBothRevisions(t *testing.T) {
	f := setup(t)
	out, err := f.apply(widgetManifest)
	if err != nil {
		t.Fatal(err)
	}
	current := out.Resource.Stored.Revision.String()
	_, err = f.apply(based("0-1"))
	e := servicetest.WantCode(t, err, failure.CodeConflict)
	if e.ExpectedRevision != "0-1" || e.CurrentRevision != current || !strings.Contains(e.Message, "0-1") || !strings.Contains(e.Message, current) {
		t.Errorf("%+v", e)
	}
}

func TestManifest_AManifestHasTheExpiryAndTheSubKind(t *testing.T) {
	k := servicetest.Widget()
	k.Expires, k.SubKinds = true, []string{"Round"}
	f := setupKinds(t, k)
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Second).Format(time.RFC3339)
	text := strings.Replace(strings.Replace(widgetManifest, "metadata:", "subKind: Round\nmetadata:\n  expiresAt: "+at, 1), "  labels: {app: x}\n", "", 1)
	if _, err := f.apply(text); err != nil {
		t.Fatal(err)
	}
	for _, format := range []service.ManifestFormat{service.YAML, service.JSON} {
		got, err := f.Manifest(f.Stored("a"), format)
		if err != nil || !strings.Contains(got, at) || !strings.Contains(got, "Round") {
			t.Errorf("%v\n%s", err, got)
		}
	}
}
