// Package check renders the chart in deploy/helm/sluice by Helm's own engine, and decodes what comes out strictly by
// the types of Kubernetes. It is a module of its own, since the gateway needs neither Helm nor Kubernetes.
package check
