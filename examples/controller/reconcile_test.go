package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sluicegw/sluice/graph/client"
)

func TestAResourceIsLeftAloneUntilItIsDue(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	c := &controller{resync: time.Hour, now: func() time.Time { return now }}
	resourceAt := func(ago time.Duration, period string, of client.Condition) *resource {
		of.Type = progressing
		r := &resource{Resource: client.Resource{Metadata: client.Metadata{Generation: 2}}, spec: spec{ResyncPeriod: period}}
		r.Status, _ = json.Marshal(map[string]any{"conditions": []client.Condition{of}})
		if ago >= 0 {
			r.status.LastSyncTime = now.Add(-ago)
		}
		return r
	}
	done := client.Condition{Status: isFalse, Reason: reasonSuccess, ObservedGeneration: 2}
	for name, test := range map[string]struct {
		resource        *resource
		settled         bool
		atLeast, atMost time.Duration
	}{
		"done, by the controller's period": {resourceAt(20*time.Minute, "", done), true, 40 * time.Minute, 52 * time.Minute},
		"done, by its own period":          {resourceAt(20*time.Minute, "30m", done), true, 10 * time.Minute, 16 * time.Minute},
		"done, never again":                {resourceAt(20*time.Minute, "0s", done), true, 0, 0},
		"done, and due":                    {resourceAt(30*time.Minute, "30m", done), false, 0, 0},
		"ready before it had a controller": {resourceAt(-1, "", done), false, 0, 0},
		"of an older spec":                 {resourceAt(0, "", client.Condition{Status: isFalse, Reason: reasonSuccess, ObservedGeneration: 1}), false, 0, 0},
		"not yet looked at":                {resourceAt(-1, "", client.Condition{Status: isTrue, Reason: reasonProgressing, ObservedGeneration: 2}), false, 0, 0},
		"failed for now":                   {resourceAt(0, "", client.Condition{Status: isTrue, Reason: reasonTransient, ObservedGeneration: 2}), false, 0, 0},
		"a spec that is wrong":             {resourceAt(5*time.Hour, "", client.Condition{Status: isFalse, Reason: reasonConfiguration, ObservedGeneration: 2}), true, 0, 0},
		"nothing can be done":              {resourceAt(5*time.Hour, "", client.Condition{Status: isFalse, Reason: reasonUnrecoverable, ObservedGeneration: 2}), true, 0, 0},
		"a wrong spec that was changed":    {resourceAt(0, "", client.Condition{Status: isFalse, Reason: reasonConfiguration, ObservedGeneration: 1}), false, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for range 100 {
				wait, settled := c.settled(test.resource)
				if settled != test.settled || wait < test.atLeast || wait > test.atMost {
					t.Fatalf("%v for %v, want %v for %v to %v", settled, wait, test.settled, test.atLeast, test.atMost)
				}
			}
		})
	}
}

func TestALookThatShowsNothingNewIsNoStatus(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	r := &resource{Resource: client.Resource{Metadata: client.Metadata{Generation: 2}}}
	for _, path := range []string{"id", "lastSyncTime", "conditions", "resource", "resource.status"} {
		r.kind.Fields = append(r.kind.Fields, client.Field{Path: "status." + path, Type: "String"})
	}
	// report notes what the gateway would store.
	report := func(o outcome) (written bool) {
		t.Helper()
		now = now.Add(time.Second)
		next := r.next(o, now)
		if next == nil {
			return false
		}
		raw, err := json.Marshal(next)
		if err != nil {
			t.Fatal(err)
		}
		r.stored, r.status, r.Status = nil, status{}, raw
		if err := errors.Join(json.Unmarshal(raw, &r.stored), json.Unmarshal(raw, &r.status)); err != nil {
			t.Fatal(err)
		}
		return true
	}
	building := outcome{object: &object{ID: "a", State: "BUILD"}, waiting: sayReady}
	broken := outcome{object: building.object, err: errors.New("in use")}
	ready := outcome{object: &object{ID: "a", State: stateActive}}
	for i, step := range []struct {
		outcome outcome
		writes  bool
	}{
		{building, true}, {building, false}, {building, false}, {broken, true}, {broken, false}, {outcome{err: errors.New("away")}, true},
		{outcome{err: errors.New("away")}, false}, {building, true}, {building, false}, {ready, true}, {ready, true},
	} {
		if written := report(step.outcome); written != step.writes {
			t.Errorf("step %d: written %v", i, written)
		} else if written && step.outcome.object != nil && !r.status.LastSyncTime.Equal(now) {
			t.Errorf("step %d: read at %v, not %v", i, r.status.LastSyncTime, now)
		}
	}
}

func TestConditionsSayWhatCameOfIt(t *testing.T) {
	o := &object{State: stateActive}
	for _, test := range []struct {
		outcome              outcome
		progressing, reason  string
		availability, saying string
	}{
		{outcome{object: o}, isFalse, reasonSuccess, isTrue, sayCurrent},
		{outcome{object: o, waiting: sayReady}, isTrue, reasonProgressing, isFalse, sayReady},
		{outcome{err: errors.New("no route")}, isTrue, reasonTransient, isFalse, "no route"},
		{outcome{err: fmt.Errorf("%w: mtu", errRefused)}, isFalse, reasonConfiguration, isFalse, "the cloud refused it: mtu"},
		{outcome{gone: true, err: &terminalError{reasonUnrecoverable, sayGone}}, isFalse, reasonUnrecoverable, isFalse, sayGone},
	} {
		list := test.outcome.conditions()
		a, p := list[0], list[1]
		if p.Type != progressing || p.Status != test.progressing || p.Reason != test.reason || p.Message != test.saying {
			t.Errorf("%+v: Progressing is %+v", test.outcome, p)
		}
		if a.Type != available || a.Status != test.availability || a.Reason != p.Reason {
			t.Errorf("%+v: Available is %+v", test.outcome, a)
		}
		if a.Status != isTrue && a.Message != p.Message {
			t.Errorf("%+v: Available says %q, Progressing %q", test.outcome, a.Message, p.Message)
		}
	}
}
