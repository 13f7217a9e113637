// Package output writes resources for people and for programs: tables, YAML,
// JSON, names, and the values that a JSONPath template or the user's columns select.
// Nothing that is stored reaches a terminal as a command.
package output
