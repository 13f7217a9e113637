package service_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/ownertest"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
)

// BenchmarkOwned_FillAndCompare measures how long it takes until 20,000 resources of a service are mirrored in the embedded
// store, and until a gateway that starts on it has compared them. Each is done once for each round.
func BenchmarkOwned_FillAndCompare(b *testing.B) {
	const resources = 20_000
	teams := ownertest.New("teams", ownertest.Full("Team"))
	for n := range resources {
		r := ownedTeam(fmt.Sprint("t", n), n)
		r.Labels = map[string]string{"tier": "gold"}
		r.Status = []byte(`{"members":2}`)
		teams.Put(r)
	}
	front := httptest.NewServer(remote.Handler(teams))
	defer front.Close()
	client, err := remote.New(remote.Config{Name: "teams", Address: front.URL, Timeout: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	for b.Loop() {
		store, err := bolt.Open(bolt.Config{Path: filepath.Join(b.TempDir(), "store")})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(resources/followed(b, store, client).Seconds(), "filled/s")
		b.ReportMetric(resources/followed(b, store, client).Seconds(), "compared/s")
		if err := store.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// followed runs a gateway until everything of the service is mirrored, and returns how long that took.
func followed(b *testing.B, store interface {
	backend.Store
	backend.Clock
}, teams owner.Service) time.Duration {
	b.Helper()
	svc, err := service.New(service.Config{
		Kinds: teamKinds(), Store: store, Owners: map[string]owner.Service{"teams": teams}, IndexMemory: -1,
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	begin := time.Now()
	go func() { ended <- svc.Run(ctx) }()
	for svc.Owners()[0].State != service.OwnerFollowed {
		time.Sleep(time.Millisecond)
	}
	took := time.Since(begin)
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	return took
}
