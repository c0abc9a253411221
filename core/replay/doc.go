// Package replay writes what listeners hear into files and plays files back: as
// frames at their own pace, or as an agent's server.
//
// A file has the frames of one stream, in the form that package fixture calls
// frames: `earshot decode` reads it too. What a listener remembers for itself
// (source.Recording.Mark) is not written.
package replay
