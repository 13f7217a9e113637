package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// reviewer is a service that owns nothing and reviews changes.
type reviewer struct {
	owner.Service // nil: no other call is made
	mu            sync.Mutex
	requests      []owner.Write
	callers       []access.Caller
	// answer decides; nil accepts everything.
	answer func(ctx context.Context, w owner.Write) (owner.Answer, error)
}

func (r *reviewer) Write(ctx context.Context, w owner.Write) (owner.Answer, error) {
	r.mu.Lock()
	r.requests = append(r.requests, w)
	r.callers = append(r.callers, access.CallerFrom(ctx))
	r.mu.Unlock()
	if r.answer == nil {
		return owner.Answer{Outcome: owner.Done}, nil
	}
	return r.answer(ctx, w)
}

// take returns what was asked since the last call.
func (r *reviewer) take() []owner.Write {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.requests
	r.requests = nil
	return out
}

// reviewedWidgets is a service whose widgets are reviewed.
func reviewedWidgets(t *testing.T, r owner.Service, change func(k *descriptor.Kind)) *fixture {
	t.Helper()
	k := servicetest.WithConditions(servicetest.Widget())
	k.Expires = true
	k.Review = "policy"
	k.Spec.Fields = append(k.Spec.Fields, descriptor.Field{
		Name: "secret", Type: descriptor.TypeString, WriteOnly: true, Constraint: descriptor.Constraint{MaxLength: new(20)},
	})
	if change != nil {
		change(&k)
	}
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	cfg := service.Config{Kinds: []descriptor.Kind{k}, Store: store, IndexMemory: -1}
	if r != nil {
		cfg.Owners = map[string]owner.Service{"policy": r}
	}
	svc, err := service.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{&servicetest.Fixture{Service: svc, T: t, Store: store}}
}

// labelled returns a patch of the labels.
func labelled(value string) service.MetadataPatch {
	return service.MetadataPatch{Labels: service.Optional[[]service.PairPatch]{
		Set: true, Value: []service.PairPatch{{Key: "a", Value: &value}},
	}}
}

func TestReview_AsksBeforeWhatACallerWrites(t *testing.T) {
	r := &reviewer{}
	f := reviewedWidgets(t, r, nil)
	ctx := access.WithCaller(t.Context(), servicetest.As("ada"))
	id := servicetest.Named("a")
	revision := func() string { return f.Stored("a").Revision.String() }
	one := func(what, spec string, absent, dryRun bool) {
		t.Helper()
		requests := r.take()
		if len(requests) != 1 {
			t.Fatalf("%s: it was asked %d times", what, len(requests))
		}
		w := requests[0]
		if !w.DryRun || w.IfAbsent != absent || (w.IfTag == "") != absent || string(w.Resource.Spec) != spec {
			t.Errorf("%s: %+v %s", what, w, w.Resource.Spec)
		}
		if !dryRun && w.IfTag == revision() {
			t.Errorf("%s: nothing was stored", what)
		}
	}
	must := func(_ *service.Written, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	spec := func(text string) json.RawMessage { return json.RawMessage(text) }

	must(f.Writer.Create(ctx, service.CreateRequest{Identity: id, Spec: spec(`{"title":"x","secret":"s"}`), DryRun: true}))
	one("a dry run", `{"title":"x"}`, true, true)
	must(f.Writer.Create(ctx, service.CreateRequest{Identity: id, Spec: spec(`{"title":"x","secret":"s"}`)}))
	one("a create", `{"title":"x"}`, true, false)
	if got := r.callers[len(r.callers)-1].UpdatedBy(); got != "ada" {
		t.Errorf("the caller is %q", got)
	}
	must(f.Writer.Update(ctx, service.UpdateRequest{Identity: id, ExpectedRevision: revision(), Spec: spec(`{"title":"y"}`)}))
	one("an update", `{"title":"y"}`, false, false)
	must(f.Writer.Patch(ctx, service.PatchRequest{Identity: id, ExpectedRevision: revision(), Patch: spec(`{"weight":70}`)}))
	one("a patch", `{"title":"y","weight":70}`, false, false)
	must(f.Writer.Patch(ctx, service.PatchRequest{Identity: id, ExpectedRevision: revision(), MetadataPatch: labelled("1")}))
	one("a patch of labels", `{"title":"y","weight":70}`, false, false)
	must(f.Writer.Upsert(ctx, service.UpsertRequest{Identity: id, Spec: spec(`{"title":"z"}`)}))
	one("an upsert", `{"title":"z"}`, false, false)
	must(f.Writer.Apply(ctx, service.ApplyRequest{
		Manifest: "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: a}\nspec: {title: q}\n",
	}))
	one("an apply", `{"title":"q"}`, false, false)

	none := func(what string) {
		t.Helper()
		if requests := r.take(); len(requests) > 0 {
			t.Errorf("%s: it was asked %+v", what, requests)
		}
	}
	must(f.Writer.Update(ctx, service.UpdateRequest{Identity: id, ExpectedRevision: revision(), Spec: spec(`{"title":"q"}`)}))
	none("an update that changes nothing")
	must(f.Writer.UpdateStatus(ctx, service.StatusRequest{Identity: id, ExpectedRevision: revision(), Status: spec(`{"id":"1"}`)}))
	none("a status")
	must(f.Writer.Patch(ctx, service.PatchRequest{Identity: id, ExpectedRevision: revision(), MetadataPatch: finalizers("example.org/x")}))
	none("finalizers")
	must(f.Writer.Delete(ctx, service.DeleteRequest{Identity: id}))
	must(f.Writer.Patch(ctx, service.PatchRequest{Identity: id, ExpectedRevision: revision(), MetadataPatch: without("example.org/x")}))
	none("a delete")
}

func TestReview_WhatItDecidesIsTheCallers(t *testing.T) {
	violations := []owner.Violation{{Path: "spec.title", Rule: "taste", Message: "no poems"}, {Message: "too much"}}
	for name, c := range map[string]struct {
		answer owner.Answer
		want   failure.Error
	}{
		"violations": {
			owner.Answer{Outcome: owner.Invalid, Violations: violations},
			failure.Error{
				Code: failure.CodeValidationFailed, Message: `the service policy does not accept Widget "a" in namespace "default"`,
				Violations: []failure.Violation{
					{Path: "spec.title", Rule: "taste", Message: "no poems"}, {Path: "spec", Message: "too much"},
				},
			},
		},
		"a message alone": {
			owner.Answer{Outcome: owner.Invalid, Message: "bad"},
			failure.Error{
				Code: failure.CodeValidationFailed, Message: `the service policy does not accept Widget "a" in namespace "default": bad`,
			},
		},
		"forbidden": {
			owner.Answer{Outcome: owner.Forbidden, Message: "not you"},
			failure.Error{Code: failure.CodeForbidden, Message: "the service policy forbids the change: not you"},
		},
		"refused": {
			owner.Answer{Outcome: owner.Refused, Message: "the quota is used up"},
			failure.Error{Code: failure.CodeForbidden, Message: "the service policy refuses the change: the quota is used up"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reviewer{answer: func(context.Context, owner.Write) (owner.Answer, error) { return c.answer, nil }}
			// A decision counts although failures do not.
			f := reviewedWidgets(t, r, func(k *descriptor.Kind) { k.ReviewAllowsFailure = true })
			_, err := f.Writer.Create(t.Context(), service.CreateRequest{Identity: servicetest.Named("a"), Spec: map[string]any{"title": "x"}})
			got, _ := errors.AsType[*failure.Error](err)
			if got == nil || got.Code != c.want.Code || got.Message != c.want.Message || got.Name != "a" {
				t.Fatalf("%+v", err)
			}
			if diff := cmp.Diff(c.want.Violations, got.Violations); diff != "" {
				t.Error(diff)
			}
			if f.Stored("a") != nil {
				t.Error("it was stored")
			}
		})
	}
}

func TestReview_WarningsAreThoseOfThePayload(t *testing.T) {
	r := &reviewer{answer: func(context.Context, owner.Write) (owner.Answer, error) {
		return owner.Answer{Outcome: owner.Done, Warnings: []owner.Violation{{Path: "spec.title", Message: "a poem"}}}, nil
	}}
	f := reviewedWidgets(t, r, nil)
	out := f.CreateWidget("a", `{"title":"x"}`)
	want := []failure.Warning{{Code: failure.WarningService, Path: "spec.title", Message: "a poem"}}
	if diff := cmp.Diff(want, out.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestReview_WithoutAnAnswerNothingIsStoredUnlessTheKindAllowsIt(t *testing.T) {
	for name, r := range map[string]owner.Service{
		"it is not configured": nil,
		"it is not reached": &reviewer{answer: func(context.Context, owner.Write) (owner.Answer, error) {
			return owner.Answer{}, owner.ErrNotSent
		}},
		"it has no such call": &reviewer{answer: func(context.Context, owner.Write) (owner.Answer, error) {
			return owner.Answer{}, owner.ErrUnimplemented
		}},
		"it claims a conflict": &reviewer{answer: func(context.Context, owner.Write) (owner.Answer, error) {
			return owner.Answer{Outcome: owner.Conflict}, nil
		}},
		"it is late": &reviewer{answer: func(ctx context.Context, _ owner.Write) (owner.Answer, error) {
			<-ctx.Done()
			return owner.Answer{}, ctx.Err()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, allows := range []bool{false, true} {
					f := reviewedWidgets(t, r, func(k *descriptor.Kind) { k.ReviewAllowsFailure = allows })
					begin := time.Now()
					out, err := f.Writer.Create(t.Context(), service.CreateRequest{
						Identity: servicetest.Named("a"), Spec: map[string]any{"title": "x"},
					})
					if took := time.Since(begin); took > 2*time.Second {
						t.Errorf("it took %s", took)
					}
					if allows {
						if err != nil || len(out.Warnings) != 1 || out.Warnings[0].Code != failure.WarningService {
							t.Errorf("a kind that allows it: %+v %v", out, err)
						}
						continue
					}
					known, _ := errors.AsType[*failure.Error](err)
					if known == nil || known.Code != failure.CodeUnavailable || known.Outcome != "" || f.Stored("a") != nil ||
						!strings.Contains(known.Message, "nothing was changed") || known.Retryable != (r != nil) {
						t.Errorf("%+v", known)
					}
				}
			})
		})
	}
}

// TestReview_ACallerWhoGoesIsNoFailureOfTheService: what the caller gave up is not stored.
func TestReview_ACallerWhoGoesIsNoFailureOfTheService(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	r := &reviewer{answer: func(ctx context.Context, _ owner.Write) (owner.Answer, error) {
		leave()
		<-ctx.Done()
		return owner.Answer{}, ctx.Err()
	}}
	f := reviewedWidgets(t, r, func(k *descriptor.Kind) { k.ReviewAllowsFailure = true })
	_, err := f.Writer.Create(ctx, service.CreateRequest{Identity: servicetest.Named("a"), Spec: map[string]any{"title": "x"}})
	if servicetest.CodeOf(err) != failure.CodeTimeout || f.Stored("a") != nil {
		t.Errorf("%v", err)
	}
}

// TestReview_IsAskedAboutWhatIsStored: another gateway writes while the service reviews a patch, so that another spec
// is about to be stored.
func TestReview_IsAskedAboutWhatIsStored(t *testing.T) {
	r := &reviewer{}
	f := reviewedWidgets(t, r, nil)
	f.CreateWidget("a", `{"title":"x"}`)
	r.take()
	other := sync.OnceFunc(func() {
		body := backend.EncodeBody([]byte(`{"version":"v1","metadata":{"generation":2},"spec":{"title":"other"}}`))
		f.Put(f.Stored("a").Key, backend.Put{UID: f.Stored("a").UID, Body: body})
	})
	r.answer = func(context.Context, owner.Write) (owner.Answer, error) {
		other()
		return owner.Answer{Outcome: owner.Done}, nil
	}
	out, err := f.Writer.Upsert(t.Context(), service.UpsertRequest{
		Identity: servicetest.Named("a"), Spec: json.RawMessage(`{"title":"x","weight":70}`),
	})
	requests := r.take()
	if err != nil || len(requests) != 2 || requests[0].IfTag == requests[1].IfTag {
		t.Fatalf("%+v %v, asked %d times", out, err, len(requests))
	}
}

func TestAsks_ServicesThatAreConfigured(t *testing.T) {
	f := reviewedWidgets(t, &reviewer{}, nil)
	if !f.Asks("policy") || f.Asks("other") {
		t.Errorf("policy: %v, other: %v", f.Asks("policy"), f.Asks("other"))
	}
}

func TestReview_TheStateIsWhetherTheServiceDecidedLast(t *testing.T) {
	r := &reviewer{}
	f := reviewedWidgets(t, r, nil)
	wants := func(state service.ReviewerStatus, problem string) {
		t.Helper()
		want := []service.ReviewerState{{Name: "policy", State: state, Problem: problem, Kinds: []string{"Widget"}}}
		if diff := cmp.Diff(want, f.Reviewers()); diff != "" {
			t.Error(diff)
		}
	}
	create := func(ctx context.Context) {
		_, _ = f.Writer.Create(ctx, service.CreateRequest{
			Identity: servicetest.Named("a"), Spec: json.RawMessage(`{"title":"x"}`), DryRun: true,
		})
	}
	wants(service.ReviewerUnasked, "")
	for _, one := range []struct {
		answer  owner.Answer
		err     error
		state   service.ReviewerStatus
		problem string
	}{
		{owner.Answer{Outcome: owner.Done}, nil, service.ReviewerAnswers, ""},
		{owner.Answer{}, owner.ErrNotSent, service.ReviewerUnavailable, owner.ErrNotSent.Error()},
		{owner.Answer{Outcome: owner.Refused}, nil, service.ReviewerAnswers, ""},
		{
			owner.Answer{Outcome: owner.Exists}, nil, service.ReviewerUnavailable,
			"it gave an answer that it must not give to a dry run: EXISTS",
		},
		{owner.Answer{Outcome: owner.Invalid}, nil, service.ReviewerAnswers, ""},
	} {
		r.answer = func(context.Context, owner.Write) (owner.Answer, error) { return one.answer, one.err }
		create(t.Context())
		wants(one.state, one.problem)
	}
	gone, leave := context.WithCancel(t.Context())
	r.answer = func(ctx context.Context, _ owner.Write) (owner.Answer, error) {
		leave()
		return owner.Answer{}, ctx.Err()
	}
	create(gone) // whether the service would have answered is not known
	wants(service.ReviewerAnswers, "")
	if st := reviewedWidgets(t, nil, nil).Reviewers(); len(st) != 1 || st[0].State != service.ReviewerUnknown {
		t.Errorf("%+v", st)
	}
}
