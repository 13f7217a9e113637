package server

// JoinSurrogates is for its fuzz test.
var JoinSurrogates = joinSurrogates
