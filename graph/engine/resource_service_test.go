package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/ownertest"
	"github.com/sluicegw/sluice/graph/kinds"
)

// accounts is a catalogue of a kind that the service crm owns, and of one whose changes the service policy reviews.
func accounts(t *testing.T) *kinds.Schema {
	t.Helper()
	schema, err := kinds.ReadTexts(map[string]string{"accounts.graphqls": `
type Account @resource(plural: "accounts", group: "crm.example.org", version: "v1", scope: NAMESPACED, service: "crm") {
  spec: AccountSpec!
  status: AccountStatus
}
type AccountSpec { size: Int @constraint(min: 1, max: 9) @sortable }
type AccountStatus { orders: Int }
type Order @resource(plural: "orders", group: "shop.example.org", version: "v1", scope: NAMESPACED, review: "policy") {
  spec: OrderSpec!
}
type OrderSpec {
  "In cents."
  price: Int @stored(as: "amount")
}
`}, "schema")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// crm is a gateway of these kinds, in a bubble, and the service that owns the accounts.
type crm struct {
	*gateway
	service *ownertest.Service
	mu      sync.Mutex // guards writers
	// writers are the callers of the writes that the service has received.
	writers []string
	store   backend.Store
}

// inCRM runs a test with a gateway that judges its callers. token:dev may do everything in the namespace dev.
func inCRM(t *testing.T, owners map[string]owner.Service, test func(c *crm)) {
	synctest.Test(t, func(t *testing.T) {
		c := &crm{service: ownertest.New("crm", ownertest.Full("Account"))}
		c.service.SetHooks(ownertest.Hooks{Before: func(ctx context.Context, call ownertest.Call) error {
			if call.Method == "Write" || call.Method == "Delete" {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.writers = append(c.writers, access.CallerFrom(ctx).UpdatedBy())
			}
			return nil
		}})
		if owners == nil {
			owners = map[string]owner.Service{"crm": c.service}
		}
		c.gateway = gatewayOver(t, accounts(t), drivers["memory"], func(cfg *service.Config) {
			cfg.Access = access.Config{Enabled: true, AdminGroup: "token:admins"}
			cfg.Owners = owners
			c.store = cfg.Store
		})
		ctx, cancel := context.WithCancel(t.Context())
		running := make(chan error, 1)
		go func() { running <- c.svc.Run(ctx) }()
		defer func() {
			cancel()
			<-running
		}()
		synctest.Wait()
		c.asAdmin().apply(
			role("dev", `{"kinds": ["Account"], "verbs": ["GET", "LIST", "CREATE", "DELETE"]}`),
			binding("dev", "token:dev", "dev", "dev"),
		)
		test(c)
	})
}

// settle waits until the mirror is what the service has.
func (c *crm) settle() {
	time.Sleep(3 * time.Second)
	synctest.Wait()
}

// failure returns the only error of an operation.
func (c *crm) failure(query string) *failure.Error {
	c.t.Helper()
	got := c.do(query, nil)
	if len(got.Errors) != 1 {
		c.t.Fatalf("%s\n%s %v", query, got.Data, got.Errors)
	}
	known, ok := errors.AsType[*failure.Error](got.Errors[0])
	if !ok {
		c.t.Fatalf("%s\n%v", query, got.Errors)
	}
	return known
}

// refused reports an answer that is not an error of a code, about which the service was not asked.
func (c *crm) refused(what, query string, code failure.Code) {
	c.t.Helper()
	if got := c.failure(query); got.Code != code {
		c.t.Errorf("%s: %+v, want %s", what, got, code)
	}
	if len(c.writers) > 0 {
		c.t.Errorf("%s: the service was asked by %v", what, c.writers)
	}
}

// taken returns who asked the service since the last call.
func (c *crm) taken() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := strings.Join(c.writers, " ")
	c.writers = nil
	return out
}

func TestOwnedKind_RightsAreJudgedBeforeTheServiceIsAsked(t *testing.T) {
	inCRM(t, nil, func(c *crm) {
		create := func(namespace string) string {
			return `mutation { createAccount(input: {name: "a", namespace: "` + namespace + `", spec: {size: 1}}) { account { spec { size } } } }`
		}
		c.as("token:dev")
		c.refused("another namespace", create("ops"), "FORBIDDEN")
		c.refused("another verb", `mutation { patchAccount(input: {name: "a", namespace: "dev", expectedRevision: "x", spec: {size: 2}}) { account { id } } }`, "FORBIDDEN")
		c.refused("a value that the SDL does not accept", strings.Replace(create("dev"), "size: 1", "size: 99", 1), "VALIDATION_FAILED")
		c.wants(create("dev"), `{"createAccount":{"account":{"spec":{"size":1}}}}`)
		if got := c.taken(); got != "token:dev" {
			t.Errorf("the service was asked by %q", got)
		}
		c.as("token:nobody")
		c.refused("a delete", `mutation { deleteAccount(input: {name: "a", namespace: "dev"}) { state } }`, "FORBIDDEN")
	})
}

// TestOwnedKind_ScopesBoundWhatIsReadOfTheMirror: the gateway reads as itself, and shows callers what they may see.
func TestOwnedKind_ScopesBoundWhatIsReadOfTheMirror(t *testing.T) {
	inCRM(t, nil, func(c *crm) {
		for _, namespace := range []string{"dev", "ops"} {
			c.service.Put(owner.Resource{
				Key:  backend.Key{Kind: "Account", Namespace: namespace, Name: "a"},
				Spec: []byte(`{"size":3}`), Status: []byte(`{"orders":7}`),
			})
		}
		c.settle()
		const list = `{ accounts { totalCount nodes { metadata { namespace } status { orders } } } }`
		c.asAdmin().wants(list, `{"accounts":{"totalCount":2,"nodes":[`+
			`{"metadata":{"namespace":"dev"},"status":{"orders":7}},{"metadata":{"namespace":"ops"},"status":{"orders":7}}]}}`)
		c.as("token:dev").wants(list, `{"accounts":{"totalCount":1,"nodes":[{"metadata":{"namespace":"dev"},"status":{"orders":7}}]}}`)
		c.wants(`{ account(name: "a", namespace: "ops") { id } }`, `{"account":null}`)
	})
}

// TestOwnedKind_TheLogSaysWhoMadeAChange, as the audit log has it: the caller, or the service.
func TestOwnedKind_TheLogSaysWhoMadeAChange(t *testing.T) {
	inCRM(t, nil, func(c *crm) {
		at, err := c.store.Position(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.as("token:dev").wants(
			`mutation { createAccount(input: {name: "a", namespace: "dev", spec: {size: 1}}) { account { metadata { updatedBy } } } }`,
			`{"createAccount":{"account":{"metadata":{"updatedBy":"token:dev"}}}}`)
		c.service.Put(owner.Resource{Key: backend.Key{Kind: "Account", Namespace: "dev", Name: "b"}, Spec: []byte(`{"size":2}`)})
		c.settle()
		changes, err := c.store.Watch(t.Context(), backend.Watch{From: at, MaxLag: math.MaxInt32})
		if err != nil {
			t.Fatal(err)
		}
		defer changes.Close()
		by := map[string]string{}
		for len(by) < 2 {
			d, err := changes.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range d.Events {
				if by[e.Resource.Name] == "" {
					by[e.Resource.Name] = access.ParseActor(e.Actor).Name
				}
			}
		}
		if by["a"] != "token:dev" || by["b"] != "service:crm" {
			t.Errorf("the log says %v", by)
		}
	})
}

func TestOwnedKind_CanBeReadWithoutItsService(t *testing.T) {
	inCRM(t, map[string]owner.Service{}, func(c *crm) {
		c.asAdmin().wants(`{ accounts { totalCount } kinds { name service { name state lagSeconds followed } } }`,
			`{"accounts":{"totalCount":0},"kinds":[`+
				`{"name":"AccessBinding","service":null},{"name":"AccessRole","service":null},`+
				`{"name":"Account","service":{"name":"crm","state":"UNKNOWN","lagSeconds":0,"followed":false}},{"name":"Order","service":null}]}`)
		for what, query := range map[string]string{
			"a create":  `mutation { createAccount(input: {name: "a", spec: {size: 1}}) { account { id } } }`,
			"a dry run": `mutation { createAccount(input: {name: "a", spec: {size: 1}, dryRun: true}) { account { id } } }`,
			"an upsert": `mutation { upsertAccount(input: {name: "a", spec: {size: 1}}) { account { id } } }`,
			"a delete":  `mutation { deleteAccount(input: {name: "a"}) { state } }`,
		} {
			got := c.failure(query)
			if got.Code != failure.CodeUnavailable || got.Setting != "services" || got.Retryable ||
				!strings.Contains(got.Message, "the service crm, which is not configured on this gateway") {
				t.Errorf("%s: %+v", what, got)
			}
		}
		got := c.failure(`mutation { createOrder(input: {name: "a", spec: {price: 1}}) { order { id } } }`)
		if got.Code != failure.CodeUnavailable || got.Setting != "services" ||
			!strings.Contains(got.Message, `reviewed by the service "policy", which this gateway does not know`) {
			t.Errorf("a kind that is reviewed: %+v", got)
		}
	})
}

// picky is a service that reviews changes.
type picky struct{ owner.Service }

func (picky) Write(_ context.Context, w owner.Write) (owner.Answer, error) {
	var spec struct{ Amount int }
	if err := json.Unmarshal(w.Resource.Spec, &spec); err != nil {
		return owner.Answer{}, err
	}
	about := []owner.Violation{{Path: "spec.amount", Rule: "policy", Message: "is too much"}}
	if spec.Amount > 100 {
		return owner.Answer{Outcome: owner.Invalid, Violations: about}, nil
	}
	return owner.Answer{Outcome: owner.Done, Warnings: about}, nil
}

func TestReviewedKind_ViolationsAndWarningsHaveTheNamesOfTheAPI(t *testing.T) {
	inCRM(t, map[string]owner.Service{"policy": picky{}}, func(c *crm) {
		c.asAdmin()
		got := c.failure(`mutation { createOrder(input: {name: "a", spec: {price: 101}}) { order { id } } }`)
		if got.Code != failure.CodeValidationFailed || got.Path != "spec.price" || got.Rule != "policy" {
			t.Errorf("%s at %q: %s", got.Code, got.Path, got.Rule)
		}
		c.wants(`mutation { createOrder(input: {name: "a", spec: {price: 100}}) { order { spec { price } } warnings { code message path } } }`,
			`{"createOrder":{"order":{"spec":{"price":100}},"warnings":[{"code":"SERVICE","message":"is too much","path":["input","spec","price"]}]}}`)
	})
}
