"""Rules for npm, yarn, pnpm, node and tsc."""

from functools import partial

from handrail.policy.commands.command_rule import Rule

OUTPUT = "-s|--silent -q|--quiet -d --verbose --no-progress --progress --no-color --color --loglevel=WORD"
NPM = f"{OUTPUT} --if-present -w|--workspace=FILE --workspaces --include-workspace-root --no-workspaces"
INSTALL = f"""
    {NPM} -D|--save-dev -S|--save -P|--save-prod -O|--save-optional -E|--save-exact --no-save --no-audit
    --audit --no-fund --fund --legacy-peer-deps --strict-peer-deps --production --omit=WORD --include=WORD
    --prefer-offline --offline --ignore-scripts --package-lock-only --no-package-lock --dry-run --no-optional
    --no-bin-links
"""
TESTS = """
    --coverage --ci --verbose --silent --watch=WORD --watchAll=WORD --runInBand --run --bail -t=TEXT
    --testNamePattern=TEXT --testPathPattern=TEXT -u --updateSnapshot --passWithNoTests --maxWorkers=WORD
    --mode=WORD --reporter=WORD --prod --production
"""
runs_script = partial(Rule, arguments="ARGUMENT...", after="REST", runs_code=True)
runs_code = partial(Rule, runs_code=True)

RULES = (
    runs_code(
        "npm install, npm i",
        options=INSTALL,
        arguments="PACKAGE...",
        auto="""
            npm install, npm install lodash@4.17.21, npm install -D @types/node, npm install --no-audit a b
        """,
        ask="""
            npm install https://x.invalid/y.tgz, npm install git+ssh://git@x.invalid/y,
            npm install user/repo, npm install github:user/repo, npm install -g x, npm install --global x,
            npm install --location=global x, npm install --registry=http://x.invalid,
            npm install --script-shell=./x, npm install --git=./x, npm install --prefix /x,
            npm install --userconfig=x, npm install a@npm:b, npm install ../x, npm install x.tgz,
            npm install --pre /x, npm install --force, npm install -qg x
        """,
    ),
    runs_code(
        "npm ci",
        options=INSTALL,
        auto="npm ci, npm ci --ignore-scripts",
        ask="npm ci x, npm ci --prefix /x, npm ci --registry=http://x.invalid",
    ),
    runs_code(
        "npm run",
        options=NPM,
        arguments="SCRIPT? ARGUMENT...",
        after="REST",
        auto="""
            npm run, npm run build, npm run lint:fix-all, npm run test -- --watch=false, npm run -s build,
            npm run build -w packages/a
        """,
        ask="""
            npm run build --script-shell ./x, npm run -C /x build, npm run env, npm run -- env,
            npm run build --prefix=/x, npm run build --node-options=x, npm run build --shell=x
        """,
    ),
    runs_script(
        "npm test, npm t",
        options=NPM,
        auto="npm test, npm test -- --coverage, npm test --silent",
        ask="npm test --node-options=x, npm test --prefix /x, npm test --scripts-prepend-node-path=x",
    ),
    runs_code(
        "npm ls",
        options=f"{NPM} --depth=NUMBER -a|--all --json -l|--long --parseable",
        arguments="PACKAGE...",
        auto="npm ls, npm ls --depth=0, npm ls lodash",
        ask="npm ls -g, npm ls --prefix=/x",
    ),
    runs_code(
        "yarn install",
        options="""
            --frozen-lockfile --immutable --check-files --ignore-scripts --offline --prefer-offline
            --production --non-interactive --silent -s --verbose --no-progress --ignore-optional
            --ignore-engines --pure-lockfile --no-lockfile --inline-builds
        """,
        auto="yarn install, yarn install --frozen-lockfile",
        ask="""
            yarn install --cwd /x, yarn install --registry=http://x.invalid,
            yarn install --modules-folder=/x, yarn install x, yarn install --cache-folder x,
            yarn install --use-yarnrc x
        """,
    ),
    runs_script(
        "yarn test, yarn build, yarn lint",
        options=TESTS,
        auto="yarn test, yarn build, yarn test --coverage, yarn test -- --x, yarn test -t x",
        ask="yarn test --cwd /x, yarn build --cwd=/x, yarn test --use-yarnrc x",
    ),
    runs_code(
        "pnpm install, pnpm i",
        options="""
            --frozen-lockfile --no-frozen-lockfile --prefer-offline --offline --ignore-scripts --lockfile-only
            -P|--prod -D|--dev --no-optional --silent -s -r|--recursive --reporter=WORD
            --prefer-frozen-lockfile
        """,
        auto="pnpm install, pnpm install --frozen-lockfile",
        ask="""
            pnpm install --dir /x, pnpm install -C /x, pnpm install --registry=http://x.invalid,
            pnpm install --modules-dir=/x, pnpm install --global, pnpm install --store-dir=/x,
            pnpm install x
        """,
    ),
    runs_script(
        "pnpm test, pnpm build, pnpm lint",
        options=TESTS,
        auto="pnpm test, pnpm build, pnpm test -- --x",
        ask="pnpm test --dir /x, pnpm test -C /x, pnpm build --script-shell=x",
    ),
    runs_code(
        "tsc",
        style="single",
        options="""
            --noEmit|-noEmit --project|-p=FILE --pretty|-pretty --strict --skipLibCheck --listFiles
            --version|-v --noErrorTruncation --showConfig --target|-t=WORD --module|-m=WORD --jsx=WORD
            --esModuleInterop --moduleResolution=WORD --lib=WORD --allowJs --checkJs --noImplicitAny
            --resolveJsonModule --noUnusedLocals --noUnusedParameters --strictNullChecks --isolatedModules
            --help|-h --listFilesOnly --diagnostics --extendedDiagnostics --traceResolution --explainFiles
        """,
        arguments="FILE...",
        auto="tsc --noEmit, tsc, tsc -p tsconfig.json --noEmit, tsc --noEmit src/a.ts",
        ask="""
            tsc --outDir /x, tsc --outFile x, tsc -w, tsc --watch, tsc @args, tsc --build, tsc -b,
            tsc --init, tsc --declarationDir=x, tsc --tsBuildInfoFile x, tsc --generateTrace x,
            tsc --generateCpuProfile x
        """,
    ),
)
