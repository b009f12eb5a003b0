// Compiles CoffeeScript programs to JavaScript: node compile_coffeescript.js FOLDER < programs
//
// Input: one program a line, as a JSON string. Output: a line each, {"js": text} or {"error": text}.
// FOLDER is where npm has installed the package coffeescript.
const path = require('path');
const readline = require('readline');

const compiler = require(path.resolve(process.argv[2], 'node_modules', 'coffeescript'));

function compile(program) {
  try {
    return {js: compiler.compile(program, {bare: true, header: false})};
  } catch (error) {
    return {error: String(error.message)};
  }
}

readline.createInterface({input: process.stdin, terminal: false}).on('line', (line) => {
  process.stdout.write(JSON.stringify(compile(JSON.parse(line))) + '\n');
});
