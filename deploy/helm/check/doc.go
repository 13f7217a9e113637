// Package check tests the Helm chart in deploy/helm/sluice. The tests render the chart with Helm's own engine and
// decode the result strictly as objects of Kubernetes. The package is in a separate module because the gateway needs
// neither Helm nor Kubernetes.
package check
