from tstar.cli import main

main()
