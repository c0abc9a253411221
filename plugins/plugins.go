// Package plugins lists the decoders that the earshot executable carries: one for each
// folder here. Nothing but the list is in this package, and decoders do not see it.
package plugins

//go:generate go run bundle.go
//go:generate go test -count=1 -run TestFormatsPage . -update
