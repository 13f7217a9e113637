package service_test

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// BenchmarkIndexMemory measures the memory that the index takes for each network. A network has
// a body of 1.3 KB, half of it two conditions, since the Secret that it names is absent.
// SLUICE_BENCH_SIZES is the number of networks.
func BenchmarkIndexMemory(b *testing.B) {
	n := 10_000
	if size, err := strconv.Atoi(os.Getenv("SLUICE_BENCH_SIZES")); err == nil {
		n = size
	}
	store, err := memory.Open(memory.Config{LogEntries: 1000})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	open := func(indexMemory int64) *service.Service {
		s, err := service.New(service.Config{Kinds: kindstest.Kinds(b), Store: store, IndexMemory: indexMemory})
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	writer := open(-1)
	var wg sync.WaitGroup
	for worker := range 64 {
		wg.Go(func() {
			for i := worker; i < n; i += 64 {
				if err := createNetwork(b, writer, i); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	fillIndex(b, open(8<<30), n)
}

// createNetwork creates a network of the size that the comparison with other gateways uses, and reports its status.
func createNetwork(b *testing.B, s *service.Service, i int) error {
	identity := kind.Identity{Kind: "Network", Namespace: new(fmt.Sprintf("ns-%02d", i%20)), Name: fmt.Sprintf("net-%06d", i)}
	created, err := s.Writer.Create(b.Context(), service.CreateRequest{
		Identity: identity,
		Metadata: service.Metadata{Labels: service.Optional[[]service.Label]{Set: true, Value: []service.Label{
			{Key: "team", Value: fmt.Sprint("team-", i%10)}, {Key: "tier", Value: []string{"gold", "silver", "bronze"}[i%3]}, {Key: "app", Value: fmt.Sprintf("app-%02d", i%97)},
		}}},
		Spec: map[string]any{
			"cloudCredentialsRef": map[string]any{"cloudName": "openstack", "secretName": "cloud-config"}, "managementPolicy": "managed",
			"resource": map[string]any{
				"description":  fmt.Sprintf("tenant network %d for application %d, managed by the platform", i, i%97),
				"adminStateUp": i%8 != 0, "mtu": []int{1450, 1500, 8950, 9000}[i%4], "tags": []any{fmt.Sprint("zone-", i%3), fmt.Sprintf("rack-%02d", i%40)},
			},
		},
	})
	if err != nil {
		return err
	}
	_, err = s.Writer.UpdateStatus(b.Context(), service.StatusRequest{
		Identity: identity, ExpectedRevision: created.Resource.Stored.Revision.String(),
		Status: map[string]any{"resource": map[string]any{"status": []string{"ACTIVE", "ACTIVE", "ACTIVE", "BUILD", "DOWN"}[i%5]}},
	})
	return err
}
