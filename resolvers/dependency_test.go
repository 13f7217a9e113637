package resolvers_test

import (
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/core"
)

func TestDependencyTree_RefusesADepthAndAnID(t *testing.T) {
	w := setup(t)
	for _, depth := range []int32{0, 11, -1} {
		_, err := w.Query().DependencyTree(t.Context(), "x", nil, &depth)
		w.refused("the depth", err, failure.CodeBadUserInput, "depth")
	}
	_, err := w.Query().DependencyTree(t.Context(), "x", nil, nil)
	w.refused("the id", err, failure.CodeBadUserInput, "id")
}

func TestDependencyTree_OfAnAbsentResourceIsNull(t *testing.T) {
	id := kind.GlobalID(backend.Key{Kind: "Network", Namespace: "default", Name: "none"})
	if tree, err := setup(t).Query().DependencyTree(t.Context(), id, nil, nil); tree != nil || err != nil {
		t.Errorf("%+v %v", tree, err)
	}
}

func TestState_IsOfTheReferenceOnTheWay(t *testing.T) {
	w := setup(t)
	const spec = `{"managementPolicy":"managed","cloudCredentialsRef":{"cloudName":"c","secretName":"s"},"resource":{"networkRef":"n","ipVersion":4,"cidr":"10.0.0.0/24"}}`
	subnet := w.create("Subnet", "s", spec)
	network := kind.GlobalID(backend.Key{Kind: "Network", Namespace: "default", Name: "n"})
	for _, n := range []core.DependencyNode{
		{ResourceID: network, From: &subnet, Outward: true},
		{ResourceID: subnet, From: &network},
	} {
		if got, err := w.DependencyNode().State(t.Context(), &n); err != nil || got == nil || *got != core.DependencyStateMissing {
			t.Errorf("%+v: %v %v, want MISSING", n, got, err)
		}
	}
	if got, err := w.DependencyNode().State(t.Context(), &core.DependencyNode{ResourceID: subnet}); got != nil || err != nil {
		t.Errorf("of the root: %v %v", got, err)
	}
}
