package e2e_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestTheValuesOfASecretAreOfItsRevision writes, deletes and reads one Secret by several
// clients, while the gateway is killed and started again. Its description and its two
// values are one number: whatever is read is whole, and of the revision that it says.
func TestTheValuesOfASecretAreOfItsRevision(t *testing.T) {
	t.Parallel()
	data, keys := t.TempDir(), keysFile(t, "a")
	var mu sync.Mutex
	numbers := map[string]string{} // by revision, as the answers to writes and reads have it
	agree := func(revision, number string) {
		mu.Lock()
		defer mu.Unlock()
		if was, ok := numbers[revision]; ok && was != number {
			t.Errorf("revision %s has %s and %s", revision, was, number)
		}
		numbers[revision] = number
	}
	looked := 0
	read := func(g *gateway) {
		a, err := g.send(`{ reveal(kind: "Secret", name: "s") { revision values { text } } secret(name: "s") { metadata { revision description } } }`, nil)
		if err != nil || len(a.Errors) > 0 {
			return // the gateway is gone
		}
		if number, ok := a.get("secret", "metadata", "description").(string); ok {
			agree(a.get("secret", "metadata", "revision").(string), number)
		}
		if a.get("reveal") == nil {
			return
		}
		first, second := a.get("reveal", "values", 0, "text"), a.get("reveal", "values", 1, "text")
		if first != second || first == nil {
			t.Errorf("%v", a.Data)
			return
		}
		agree(a.get("reveal", "revision").(string), first.(string))
		mu.Lock()
		looked++
		mu.Unlock()
	}
	for round := range 6 {
		g := start(t, data, "--encryption-keys-file", keys)
		read(g) // what the crash has left
		var clients sync.WaitGroup
		for n := range 3 {
			clients.Go(func() {
				for i := range 60 {
					number := fmt.Sprintf("%d-%d-%d", round, n, i)
					a, err := g.send(fmt.Sprintf(`mutation { upsertSecret(input: {name: "s", description: %q, spec: {stringData: [{key: "a", value: %q}, {key: "b", value: %q}]}}) { secret { metadata { revision } } } }`, number, number, number), nil)
					if err != nil {
						return
					}
					if revision, ok := a.get("upsertSecret", "secret", "metadata", "revision").(string); ok {
						agree(revision, number)
					}
					if i%15 == 14 {
						_, _ = g.send(`mutation { deleteSecret(input: {name: "s"}) { state } }`, nil)
					}
					if n == 0 && i == 40 {
						_ = g.cmd.Process.Kill()
					}
				}
			})
			clients.Go(func() {
				for range 60 {
					read(g)
				}
			})
		}
		clients.Wait()
		g.kill()
		if strings.Contains(g.log.String(), "unreadable") {
			t.Errorf("round %d:\n%s", round, g.log)
		}
	}
	if looked < 100 {
		t.Errorf("%d reads", looked)
	}
}
