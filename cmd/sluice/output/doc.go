// Package output writes resources for people and for programs: as tables, YAML, JSON, or names, or the values that are
// selected by a JSONPath template or by columns of the user. It escapes stored values so that they cannot control a
// terminal.
package output
