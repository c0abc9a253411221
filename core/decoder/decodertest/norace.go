//go:build !race

package decodertest

const raceDetector = false
