//go:build hostile

package e2e_test

import (
	"fmt"
	"strings"
)

// manifestHead begins manifests of a network.
const manifestHead = "apiVersion: openstack.k-orc.cloud/v1alpha1\nkind: Network\nmetadata: {name: x}\nspec: {cloudCredentialsRef: {secretName: s, cloudName: o}, resource: {}}\n"

// bomb is a manifest whose aliases expand to length times n bytes.
func bomb(length, n int) string {
	return manifestHead + "x: &a " + strings.Repeat("y", length) + "\nz: [" + strings.Repeat("*a,", n) + "]\n"
}

// laughs is a manifest whose aliases expand to 10 to the power of depth.
func laughs(depth int) string {
	var b strings.Builder
	b.WriteString(manifestHead + "x0: &x0 y\n")
	for i := 1; i <= depth; i++ {
		fmt.Fprintf(&b, "x%d: &x%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*x%d,", i-1), 10))
	}
	return b.String()
}

// merges is a manifest whose maps take in one another.
func merges(n int) string {
	var b strings.Builder
	b.WriteString(manifestHead + "x0: &x0 {k0: v}\n")
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "x%d: &x%d {<<: [%s], k%d: v}\n", i, i, strings.Repeat(fmt.Sprintf("*x%d,", i-1), 8), i)
	}
	return b.String()
}

// inputs are what clients write, mostly without writing: dryRun is enough to have it
// parsed, validated and compared.
func inputs() []hostileDocument {
	applied := func(n int, manifest string) request {
		return request{`mutation($m: String!) { ` + aliased(n, `applyManifest(input: {manifest: $m, dryRun: true}) { __typename }`) + `}`, map[string]any{"m": manifest}}
	}
	created := func(kind, selection string, input map[string]any) request {
		input["name"], input["dryRun"] = "q", true
		return request{`mutation($i: Create` + kind + `Input!) { ` + aliased(95, `create`+kind+`(input: $i) { `+selection+` }`) + `}`, map[string]any{"i": input}}
	}
	spec := func(resource map[string]any) map[string]any {
		return map[string]any{"cloudCredentialsRef": map[string]any{"secretName": "s", "cloudName": "o"}, "resource": resource}
	}
	pairs := func(n int, value string) (out []any) {
		for i := range n {
			out = append(out, map[string]any{"key": fmt.Sprint("k", i), "value": value})
		}
		return out
	}
	numbered := func(n int, format string) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf(format, i))
		}
		return out
	}
	annotated := strings.Replace(manifestHead, "metadata: {name: x}", "metadata: {name: x, annotations: {"+strings.Join(numbered(10000, "k%d: v"), ",")+"}}", 1)
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: q}\nstringData: {" + strings.Join(numbered(10000, "k%d: v"), ",") + "}\n"
	rules := []any{}
	for i := range 256 {
		rules = append(rules, map[string]any{"ethertype": "IPV4", "direction": "INGRESS", "protocol": "TCP", "portRange": map[string]any{"min": i, "max": i}})
	}
	out := []hostileDocument{
		{"aliases of a manifest that expand to 30 MB", small, "", false, applied(1, bomb(1000, 30000))},
		{"aliases of a manifest that expand to 300 MB", small, "", true, applied(1, bomb(10000, 30000))},
		{"aliases of a manifest that expand to 6 GB", small, "", false, applied(1, bomb(100000, 60000))},
		{"aliases of aliases of a manifest", small, "", false, applied(1, laughs(9))},
		{"merged maps of a manifest", small, "", false, applied(1, merges(20))},
		{"95 manifests, each just below what aliases may be", small, "", false, applied(95, bomb(1000, 900))},
		{"95 x a manifest with a list of 100,000", small, "", true, applied(95, manifestHead+"x: ["+strings.Repeat("a,", 100_000)+"]")},
		{"95 x a manifest with a comment of 200 KB", small, "", false, applied(95, manifestHead+"# "+strings.Repeat("x", 200_000))},
		{"95 x a manifest with 140,000 words of a letter", small, "", true, applied(95, manifestHead+"x: "+strings.Repeat("a ", 140_000))},
		{"95 x a manifest with a key of 280 KB", small, "", false, applied(95, manifestHead+"? "+strings.Repeat("a ", 140_000))},
		{"a manifest with 10,000 annotations", small, "", false, applied(1, annotated)},
		{"95 x a manifest with 10,000 annotations", small, "", false, applied(95, annotated)},
		{"95 x a manifest of a Secret with 10,000 keys", small, "", false, applied(95, secret)},
		{"95 x createSecret of 6,000 entries", small, "", true, created("Secret", "warnings { code }", map[string]any{"spec": map[string]any{"data": pairs(6000, "YQ==")}})},
		{"95 x createNetwork of 20,000 tags", small, "", false, created("Network", "warnings { code }", map[string]any{"spec": spec(map[string]any{"tags": numbered(20000, "t%d")})})},
		{"95 x createNetwork of 7,000 labels", small, "", true, created("Network", "warnings { code }", map[string]any{"labels": pairs(7000, "v"), "spec": spec(map[string]any{})})},
		{"95 x createNetwork with an annotation of 200 KB", small, "", false, created("Network", "network { manifest specJSON }", map[string]any{"annotations": []any{map[string]any{"key": "k", "value": strings.Repeat("v", 200_000)}}, "spec": spec(map[string]any{})})},
		{"20 x patchNetwork with 20,000 finalizers", small, "", false, request{`mutation($f: [String!]!) { ` + aliased(20, `patchNetwork(input: {name: "net", expectedRevision: "", dryRun: true, addFinalizers: $f, removeFinalizers: $f}) { warnings { code } }`) + `}`, map[string]any{"f": numbered(20000, "net%d")}}},
		{"95 x createSecurityGroup of 256 rules", small, "", false, created("SecurityGroup", "warnings { code }", map[string]any{"spec": spec(map[string]any{"rules": rules})})},
	}
	return append(out, rulesThatTakeLong()...)
}

// rulesThatTakeLong are writes of kinds whose rules do much for a small resource.
func rulesThatTakeLong() []hostileDocument {
	list := func(kind string, a any) request {
		return request{`mutation($a: [String!]!) { create` + kind + `(input: {name: "q", spec: {a: $a}}) { warnings { code } } }`, map[string]any{"a": a}}
	}
	names := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint("e", i))
		}
		return out
	}
	return []hostileDocument{
		{"a rule of 8 nested loops", small, "", true, request{query: `mutation { createLoop(input: {name: "q", spec: {a: "x"}}) { warnings { code } } }`}},
		{"95 x a rule of 8 nested loops", small, "", false, request{query: `mutation { ` + aliased(95, `createLoop(input: {name: "q", dryRun: true, spec: {a: "x"}}) { warnings { code } }`) + `}`}},
		{"a rule that compares 1,000 with each other", small, "", false, list("Uniq", names(1000))},
		{"a rule that compares 20,000 with each other", small, "", false, list("Uniq", names(20000))},
		{"a rule of 1,000 x 1,000 x 1,000 texts", small, "", false, list("Cube", names(1000))},
		{"a rule that joins texts of 1,000", small, "", false, list("Cube", repeated(200, strings.Repeat("e", 1000)))},
		{"a rule that joins texts of 250 KB", small, "", false, request{`mutation($a: String!) { createCat(input: {name: "q", spec: {a: $a}}) { warnings { code } } }`, map[string]any{"a": strings.Repeat("x", 250_000)}}},
		{"95 writes, each compares 400 with each other", small, "", true, rulesAtOnce(400)},
	}
}

// rulesAtOnce is one operation of writes that rules accept, each after long.
func rulesAtOnce(n int) request {
	var a []string
	for i := range n {
		a = append(a, fmt.Sprint("e", i))
	}
	return request{`mutation($a: [String!]!) { ` + aliasedBy(95, func(i int) string {
		return fmt.Sprintf(`createUniq(input: {name: "q%d", dryRun: true, spec: {a: $a}}) { dryRun }`, i)
	}) + `}`, map[string]any{"a": a}}
}
