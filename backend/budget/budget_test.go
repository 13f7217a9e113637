package budget_test

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/sluicegw/sluice/backend/budget"
)

func TestBudget_ABudgetIsExceededByWhatIsChargedBeyondItsLimit(t *testing.T) {
	b := budget.New(budget.Limits{budget.Rows: 10})
	if err := b.Spend(budget.Rows, 10); err != nil || b.Left(budget.Rows) != 0 {
		t.Fatalf("%v, %d are left", err, b.Left(budget.Rows))
	}
	err := b.Spend(budget.Rows, 1)
	var over *budget.ExceededError
	if !errors.As(err, &over) || over.Thing != budget.Rows || over.Limit != 10 || !strings.Contains(err.Error(), "limit-rows") {
		t.Errorf("%v", err)
	}
	if err := b.Spend(budget.Steps, 1); !errors.As(err, &over) || over.Thing != budget.Rows {
		t.Errorf("what is charged afterwards: %v", err)
	}
}

func TestBudget_WhatHasNoLimitIsCountedAllTheSame(t *testing.T) {
	b := budget.New(budget.Limits{})
	if err := b.Spend(budget.Bytes, 1<<40); err != nil || b.Left(budget.Bytes) != math.MaxInt || b.Spent(budget.Bytes) != 1<<40 {
		t.Error(err, b)
	}
}

func TestBudget_NoBudgetBoundsNothing(t *testing.T) {
	b := budget.From(t.Context())
	if err := b.Spend(budget.Rows, math.MaxInt); b != nil || err != nil || b.Over() != nil || b.Left(budget.Rows) != math.MaxInt || b.Spent(budget.Rows) != 0 {
		t.Error("a nil budget bounds something")
	}
	with := budget.New(budget.Limits{})
	if budget.From(budget.With(t.Context(), with)) != with {
		t.Error("the context does not carry it")
	}
}

func TestBudget_ManyMayChargeAtOnce(t *testing.T) {
	b := budget.New(budget.Limits{budget.Objects: 999})
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for range 100 {
				_ = b.Spend(budget.Objects, 1)
			}
		})
	}
	all.Wait()
	if b.Spent(budget.Objects) != 1000 || b.Over() == nil {
		t.Error(b)
	}
}

func TestBudget_EveryThingHasAKeyAndWords(t *testing.T) {
	seen := map[string]bool{}
	for thing := range budget.Things {
		err := (&budget.ExceededError{Thing: thing, Limit: 7}).Error()
		if seen[thing.Key()] || seen[thing.String()] || !strings.Contains(err, thing.Key()) || !strings.Contains(err, " 7 ") {
			t.Errorf("%v: %s", thing, err)
		}
		seen[thing.Key()], seen[thing.String()] = true, true
	}
}
