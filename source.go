// Package earshot embeds the source of the packages that a decoder's module imports, so that
// an executable without a checkout can write it beside a new decoder: the module may not be
// published in this version, or the author may be offline.
package earshot

import (
	"embed"
	"io/fs"
)

//go:embed go.mod go.sum LICENSE core/msg/*.go core/frame core/proto core/sdk core/internal/wire core/internal/plane core/internal/host core/sandbox
//go:embed core/decoder/*.go core/decoder/conformance/*.go core/decoder/decodertest
var source embed.FS

// Source has go.mod, go.sum and the packages of the SDK and of the tests of a decoder, and the
// SDKs of other languages in core/sdk; folders are as in the repository.
func Source() fs.FS { return source }
