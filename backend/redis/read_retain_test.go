package redis_test

import (
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
)

func TestRead_AResourceDoesNotKeepTheRecordThatItWasReadFrom(t *testing.T) {
	k := backend.Key{Kind: "Net", Namespace: "default", Name: "a"}
	for name, decode := range map[string]func(string) (*backend.Resource, error){
		"whole": func(value string) (*backend.Resource, error) { return redis.DecodeRecord(k, value) },
		"bare":  func(value string) (*backend.Resource, error) { return redis.DecodeBare(k, value) },
	} {
		t.Run(name, func(t *testing.T) {
			var freed atomic.Bool
			read := func() *backend.Resource {
				fields := strings.Join([]string{"1-2", "1000", "", "", "1-1", "uid", "1000", "0", "0", "0", "0", "", "1", "", ""}, "\n")
				value := redis.SealRecord(k, fields, "", strings.Repeat("body", 1<<14))
				runtime.AddCleanup(unsafe.StringData(value), func(freed *atomic.Bool) { freed.Store(true) }, &freed)
				r, err := decode(value)
				if err != nil || r.UID != "uid" {
					t.Fatalf("%v, %v", r, err)
				}
				return r
			}
			r := read()
			for range 100 {
				if runtime.GC(); freed.Load() {
					break
				}
			}
			if !freed.Load() {
				t.Error("the record is in memory beside the resource")
			}
			runtime.KeepAlive(r)
		})
	}
}
